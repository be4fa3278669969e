"""What `set_condition` takes is what both servers take for a definition generated from the same class, and no more."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.api import meta
from ctrlruntime.errors import Invalid
from ctrlruntime.testing import Environment

CASES = (
    {},
    *({"status": status} for status in (True, False, "Unknown", "true", "False", "", "unknown", "True\n")),
    *(
        {"reason": reason}
        for reason in ("", "A", "a", "A_", "A:b,c", "A:", "A,", "1A", "_A", "A b", "A-b", "A.b", "Ä", "A\n", "A" * 1024, "A" * 1025)
    ),
    *(
        {"type": name}
        for name in (
            "", "R", "1", "Ready", "ready.now", "example.com/Ready", "Example.com/Ready", "a/b/c", "/a", "a/", "a b", "-a",
            "a_", "a" * 316, "a" * 317, "Ready\n",
        )
    ),
    *({"message": message} for message in ("a\nb", "m" * 32768, "m" * 32769, "ä" * 32768)),
    *({"observed_generation": number} for number in (0, -1)),
)  # fmt: skip


class Status(ctrl.Model):
    conditions: list[meta.Condition] = Field(default_factory=list)


class Judged(ctrl.Object, group="condition-rules.example.com", version="v1", plural="judgeds"):
    status: Status = Field(default_factory=Status)


@pytest.fixture
async def client(server: Environment) -> AsyncIterator[ctrl.Client]:
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)), scheme=ctrl.Scheme(Judged))
    client = cluster.unfenced_client()
    await ctrl.install_crds(client, Judged)
    yield client
    await ctrl.uninstall_crds(client, Judged)
    await cluster.close()


def is_set(case):
    try:
        ctrl.set_condition([], **{"type": "Ready", "status": True, "reason": "Up", **case})
    except ValueError:
        return False
    return True


async def is_stored(client, obj, case):
    fields = {"type": "Ready", "status": "True", "reason": "Up", **case}
    fields["status"] = str(fields["status"])
    obj.status.conditions = [meta.Condition(**fields, last_transition_time=ctrl.Time.now())]
    try:
        obj.refresh(await client.status.update(obj.deep_copy()))
    except Invalid:
        return False
    return True


async def test_what_is_set_is_what_is_stored(client, namespace):
    obj = await client.create(Judged(metadata={"name": "one", "namespace": namespace}))

    stored = [await is_stored(client, obj, case) for case in CASES]

    assert [is_set(case) for case in CASES] == stored
    assert stored[0]
    assert not all(stored)
