"""Pod specs in Pods and in what makes Pods: both servers default, refuse and warn alike, and of templates as upstream does.

Nothing is stored: every create is a dry run. Each run compares three kinds, `--all` compares the other kinds, too.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import pytest
from odd_pod_specs import MORE_SPECS
from pod_specs import KINDS, SPECS
from test_builtin_kinds import Client, both, normalised, path_of

from ctrlruntime.testing import Environment

__all__ = ["both"]

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


def cases(specs: dict[str, Any], always: Container[str]) -> list[object]:
    """Each spec in each kind. Without `--all`, those in the kinds of `always` run."""
    return [
        pytest.param(
            KINDS[kind][1](spec), kind, id=f"{name}-{kind}", marks=[] if kind in always else pytest.mark.thorough
        )
        for name, spec in specs.items()
        for kind in KINDS
        if (kind, name) not in TOLERATED
    ]


@pytest.mark.parametrize(("body", "kind"), [*cases(SPECS, list(KINDS)[:3]), *cases(MORE_SPECS, {"Pod", "Deployment"})])
def test_both_servers_take_the_spec_alike(body: dict[str, Any], kind: str, both) -> None:
    embedded, real, namespace = both

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
