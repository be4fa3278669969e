"""Reviews as the API server writes them, for tests."""

from __future__ import annotations

import base64
import json
from typing import Any

from pydantic import Field

import ctrlruntime as ctrl


class GameSpec(ctrl.Model):
    replicas: int = 1
    image: str = ""
    hosts: list[str] = Field(default_factory=list)
    sides: dict[str, str] = Field(default_factory=dict)


class Game(ctrl.Object, group="games.example.com", version="v1"):
    spec: GameSpec = Field(default_factory=GameSpec)


def review(
    operation: str = "CREATE",
    object: Any = None,
    old: Any = None,
    *,
    version: str = "v1",
    uid: str = "u1",
    **request: Any,
) -> bytes:
    kind = {"group": "games.example.com", "version": "v1", "kind": "Game"}
    return json.dumps(
        {
            "apiVersion": f"admission.k8s.io/{version}",
            "kind": "AdmissionReview",
            "request": {
                "uid": uid,
                "kind": kind,
                "resource": {"group": "games.example.com", "version": "v1", "resource": "games"},
                "requestKind": kind,
                "name": "g",
                "namespace": "ns",
                "operation": operation,
                "userInfo": {"username": "jane", "groups": ["a"], "extra": {"x": ["1"]}},
                "object": object,
                "oldObject": old,
                "dryRun": False,
                "options": None,
                **request,
            },
        }
    ).encode()


def game(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "games.example.com/v1",
        "kind": "Game",
        "metadata": {"name": "g", "namespace": "ns"},
        "spec": spec,
    }


def response_of(body: bytes) -> dict[str, Any]:
    return json.loads(body)["response"]


def patch_in(response: dict[str, Any]) -> list[dict[str, Any]]:
    assert response["patchType"] == "JSONPatch"
    return json.loads(base64.b64decode(response["patch"]))
