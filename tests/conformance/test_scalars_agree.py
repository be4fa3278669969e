"""The scalar classes read what the server takes, and write what it writes."""

from __future__ import annotations

import pytest
from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.errors import APIStatusError
from ctrlruntime.field import Quantity, Time
from ctrlruntime.generate import crds

GROUP = "scalar-tests.example.com"

# Of a list of resources the server rounds up to thousandths.
QUANTITIES = [
    "0",
    "00",
    "-0",
    "0Ki",
    "0.0",
    "0e5",
    "1",
    "+1",
    "-1",
    ".5",
    "5.",
    "1.50",
    "1.500k",
    "1500",
    "1000m",
    "1500m",
    "1Ki",
    "0.5Ki",
    "1.5Ki",
    "-1.5Ki",
    "1.1Ki",
    "1.3Gi",
    "1000Ki",
    "1024Ki",
    "1025Ki",
    "1024Mi",
    "0.001Ki",
    "0.0009765625Ki",
    "8Ei",
    "-8Ei",
    "100Ei",
    "12345678901234567890Ki",
    "1E",
    "1.5E",
    "0.1E",
    "10E",
    "100E",
    "1000P",
    "99999999999999999999",
    "-9223372036854775809",
    "9223372036854775807000",
    "1e0",
    "1e1",
    "1e2",
    "1e3",
    "1E3",
    "1e4",
    "1e+3",
    "1e+03",
    "1e19",
    "-1e19",
    "1e20",
    "1e21",
    "1e30",
    "1e100",
    "1e-3",
    "12e-2",
    "1.048576e6",
]
NOT_QUANTITIES = [
    "1e3.5",
    "1e",
    "1ee",
    "1K",
    "1ki",
    "1kk",
    "1.2.3",
    "1EE",
    "1e5m",
    "1Mi5",
    "5k+",
    "5e+",
    "1_0",
    "1+1",
    "\u0661",
]

TIMES = [
    "2026-01-02T03:04:05Z",
    "2026-01-02t03:04:05z",
    "2026-01-02T03:04:05z",
    "2026-01-02T03:04:05.123456789012Z",
    "2026-01-02T03:04:05,5Z",
    "2026-01-02T03:04:05x5Z",
    "2026-01-02T03:04:05+00:00",
    "2026-01-02T03:04:05-00:00",
    "2026-01-02T03:04:05+23:59",
    "2026-01-02T03:04:05+24:00",
    "2026-01-02T03:04:05+99:99",
    "2026-01-02T03:04:05Ztoo",
    "2024-02-29T00:00:00Z",
    "0000-02-29T00:00:00Z",
    "0001-01-01T00:00:00+23:00",
    "0000-12-31T23:59:59-23:00",
    "9999-12-31T23:59:59-23:00",
    "9999-12-31T23:59:59-24:00",
]
NOT_TIMES = [
    "2026-01-01T24:00:00Z",
    "2026-06-30T23:59:60Z",
    "2026-01-02T03:04:05.Z",
    "2026-01-02T03:04:05",
    "2026-01-02",
    "2026-02-30T03:04:05Z",
    "2023-02-29T00:00:00Z",
    "2026-01-02T03:04:05+0000",
    "10000-01-01T00:00:00Z",
]


class ClockSpec(ctrl.Model):
    times: dict[str, Time] = Field(default_factory=dict)


class Clock(ctrl.Object, group=GROUP, version="v1"):
    spec: ClockSpec = Field(default_factory=ClockSpec)


def limits(quantities):
    """A LimitRange: its quantities may be of any size and sign."""
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "limits"},
        "spec": {
            "limits": [
                {"type": "Container", "max": {f"example.com/q{n}": text for n, text in enumerate(quantities)}},
            ]
        },
    }


@pytest.fixture
def clocks(server):
    server.install_crds(crds([Clock]))
    yield f"/apis/{GROUP}/v1"
    server.connection.request("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clocks.{GROUP}")


def test_quantities_are_canonical_as_the_server_writes_them(server, namespace):
    path = f"/api/v1/namespaces/{namespace}/limitranges"
    server.connection.request("POST", path, limits(QUANTITIES))
    written = server.connection.request("GET", f"{path}/limits")["spec"]["limits"][0]["max"]

    for number, text in enumerate(QUANTITIES):
        # The server keeps some texts of which it could make a shorter one.
        assert written[f"example.com/q{number}"] in {text, Quantity(text).canonical()}
        assert Quantity(written[f"example.com/q{number}"]) == Quantity(text)


@pytest.mark.parametrize("text", NOT_QUANTITIES)
def test_what_is_no_quantity_is_none_for_the_server(server, namespace, text):
    with pytest.raises(APIStatusError, match="quantit"):
        server.connection.request("POST", f"/api/v1/namespaces/{namespace}/limitranges", limits([text]))
    with pytest.raises(ValueError, match="is not a quantity"):
        Quantity(text)


def clock(namespace, times):
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Clock",
        "metadata": {"name": "clock", "namespace": namespace},
        "spec": {"times": times},
    }


def test_every_time_the_server_takes_is_read_and_written_unchanged(server, namespace, clocks):
    times = {f"t{n:02}": text for n, text in enumerate(TIMES)}

    stored = server.connection.request("POST", f"{clocks}/namespaces/{namespace}/clocks", clock(namespace, times))

    read = Clock.from_dict(stored)
    assert stored["spec"]["times"] == times
    assert read.to_dict()["spec"]["times"] == times
    assert all(moment.utcoffset() is not None for moment in read.spec.times.values())


@pytest.mark.parametrize("text", NOT_TIMES)
def test_what_the_server_refuses_is_no_time_or_written_otherwise(server, namespace, clocks, text):
    path = f"{clocks}/namespaces/{namespace}/clocks?dryRun=All"
    with pytest.raises(APIStatusError, match="date-time"):
        server.connection.request("POST", path, clock(namespace, {"t": text}))
    try:
        moment = Time.parse(text)
    except ValueError:
        return
    server.connection.request("POST", path, clock(namespace, {"t": moment.text}))
