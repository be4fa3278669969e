"""Pod specs in Pods and in what makes Pods: both servers default, refuse and warn alike, and of templates as upstream does.

Nothing is stored: every create is a dry run. Each run compares three kinds, `--all` compares the other kinds, too.
"""

from __future__ import annotations

from typing import Any

import pytest
from odd_pod_specs import MORE_SPECS
from pod_specs import KINDS, SPECS
from test_builtin_kinds import Client, both, normalised, path_of

from ctrlruntime.testing import Environment

__all__ = ["both"]

FEW = 3
TOLERATED = {("Pod", "overhead of nothing"): "an object of nothing is read as no object"}
"""Specs of kinds for which the embedded server differs, and why that is left."""

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def answer(server: Environment, namespace: str, kind: str, body: dict[str, Any]) -> dict[str, Any]:
    """What the server says to a create, with causes in any order: upstream goes through maps."""
    path = path_of(KINDS[kind][0], namespace)
    shown = normalised(*Client(server).send("POST", f"{path}?dryRun=All", body))
    causes = shown.get("details", {}).get("causes")
    if causes:
        causes.sort(key=lambda cause: (cause.get("field"), cause["message"]))
        del shown["message"]
    return shown


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=() if index < FEW else pytest.mark.thorough) for index, kind in enumerate(KINDS)],
)
@pytest.mark.parametrize("name", SPECS)
def test_both_servers_take_the_spec_alike(kind, name, both):
    if (kind, name) in TOLERATED:
        pytest.skip(TOLERATED[kind, name])
    embedded, real, namespace = both
    body = KINDS[kind][1](SPECS[name])

    assert answer(embedded, namespace, kind, body) == answer(real, namespace, kind, body)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in {"Pod", "Deployment"} else pytest.mark.thorough) for kind in KINDS]
)
@pytest.mark.parametrize("name", MORE_SPECS)
def test_both_servers_take_the_odd_spec_alike(kind, name, both):
    if (kind, name) in TOLERATED:
        pytest.skip(TOLERATED[kind, name])
    embedded, real, namespace = both
    body = KINDS[kind][1](MORE_SPECS[name])

    assert answer(embedded, namespace, kind, body) == answer(real, namespace, kind, body)


def stateful_set(**pod: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "c:1", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}], **pod}
    made = KINDS["StatefulSet"][1](spec)
    return {**made, "spec": {**made["spec"], "replicas": 0, "volumeClaimTemplates": [CLAIM]}}


@pytest.mark.parametrize(
    "pod",
    [
        {},
        {"volumes": [{"name": "data", "emptyDir": {}}]},
        {"hostname": "a.b", "subdomain": "c.d"},
        {"initContainers": [{"name": "i", "image": "i:1", "volumeMounts": [{"name": "other", "mountPath": "/o"}]}]},
    ],
    ids=["mounted", "volume-of-the-same-name", "names-that-the-set-gives", "mount-of-another"],
)
def test_stateful_set_mounts_its_claims(pod, both):
    embedded, real, namespace = both
    body = stateful_set(**pod)

    assert answer(embedded, namespace, "StatefulSet", body) == answer(real, namespace, "StatefulSet", body)


def test_stateful_set_with_mounted_claims_is_stored_and_updated(server, namespace):
    path = path_of("apps/v1/statefulsets", namespace)
    server.connection.request("POST", path, stateful_set())

    image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "c:2"}]}}}}
    updated = server.connection.request(
        "PATCH", f"{path}/x?dryRun=All", image, content_type="application/strategic-merge-patch+json"
    )

    assert updated["spec"]["template"]["spec"]["containers"][0]["image"] == "c:2"
