"""Both servers take every generated definition without a warning, and applying it a second time changes nothing.

A normal run stores them on the embedded server alone: a CRD costs kube-apiserver a tenth of a second of the processor, a dry run little.
"""

from __future__ import annotations

import http.client
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ctrlruntime.generate import GenerateWarning, Options, crds
from ctrlruntime.testing import Environment, eventually

sys.path.append(str(Path(__file__).parents[1] / "generate"))

from golden_cases import OPTIONS, kinds

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APPLY = "application/apply-patch+yaml"
UNBOUNDED = "CelFieldCase"
"""Its message expression may give a text of any length: the generator warns of it."""
CASES = {kind: classes for (_, kind), classes in kinds().items() if kind != UNBOUNDED}


class Requests:
    """Requests on one kept connection, with the warnings of the answer."""

    def __init__(self, server: Environment) -> None:
        self._connection = server.connection
        parts = urlsplit(self._connection.url)
        self._http = http.client.HTTPSConnection(
            parts.hostname or "", parts.port, context=self._connection.tls, timeout=120
        )

    def __call__(self, method: str, path: str, body: Any = None, kind: str = "application/json"):
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()  # YAML knows no surrogates
        headers = {**dict(self._connection.headers), "Content-Type": kind}
        self._http.request(method, path, data, headers)
        answer = self._http.getresponse()
        text = answer.read()
        return answer.status, json.loads(text), answer.headers.get_all("Warning") or []

    def apply(self, definition: dict[str, Any], query: str = ""):
        query = f"fieldManager=test&force=true&fieldValidation=Strict{query}"
        path = f"{DEFINITIONS}/{definition['metadata']['name']}?{query}"
        return self("PATCH", path, definition, APPLY)

    def close(self) -> None:
        self._http.close()


@pytest.fixture(scope="module")
def requests(server: Environment) -> Iterator[Requests]:
    requests = Requests(server)
    yield requests
    requests.close()


every_case = pytest.mark.parametrize("classes", CASES.values(), ids=CASES.keys())


def _definition(classes: Any) -> dict[str, Any]:
    # What the generator warns of is not what this is about: the server must take the definition in silence.
    (definition,) = crds(classes, options=OPTIONS.get(classes[0].__kind_info__.group), warn=lambda _: None)
    return definition


@every_case
def test_a_generated_definition_is_taken_without_a_warning(requests: Requests, classes):
    code, answer, warned = requests.apply(_definition(classes), "&dryRun=All")

    assert (code, warned) == (201, []), answer


@pytest.mark.parametrize("server", ["embedded", pytest.param("real", marks=pytest.mark.thorough)], indirect=True)
@every_case
async def test_a_generated_definition_that_is_applied_again_changes_nothing(requests: Requests, classes):
    definition = _definition(classes)
    code, first, _ = requests.apply(definition)
    try:
        assert code == 201, first
        path = f"{DEFINITIONS}/{definition['metadata']['name']}"
        await eventually(lambda: _is_established(requests, path))
        before = requests("GET", path)[1]
        code, again, warned = requests.apply(definition)
        assert (code, warned) == (200, [])
        assert again["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    finally:
        requests("DELETE", f"{DEFINITIONS}/{definition['metadata']['name']}")


def _is_established(requests: Requests, path: str) -> bool:
    found = requests("GET", path)[1].get("status", {}).get("conditions", [])
    states = {one["type"]: one["status"] for one in found}
    return states.get("Established") == states.get("NamesAccepted") == "True"


def test_what_the_generator_warns_of_is_refused(requests: Requests):
    classes = kinds()["plain.example.com", UNBOUNDED]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GenerateWarning)
        (definition,) = crds(classes, options=Options())

    code, answer, _ = requests.apply(definition)

    requests("DELETE", f"{DEFINITIONS}/{definition['metadata']['name']}")
    assert caught, "the generator says nothing"
    assert code == 422, answer
