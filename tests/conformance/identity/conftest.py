"""The administrator, a user nobody has heard of, and how it is given rights; on each of the two servers.

| fixture | what it is |
|---|---|
| ``admin`` | requests of the administrator |
| ``user`` | the name of a user nobody has heard of |
| ``alice`` | requests of that user |
| ``cleanup`` | paths to delete at the end |
| ``grant`` | gives that user cluster-wide rules |
"""

from __future__ import annotations

import secrets
from typing import Any

import pytest
from identity_callers import RBAC, Caller, bound, may
from servers import LONGEST_WAIT

from ctrlruntime.testing import Environment, eventually


@pytest.fixture
def admin(server: Environment) -> Caller:
    return Caller(server.kubeconfig)


@pytest.fixture
def user(server: Environment) -> str:
    """The name of a user nobody has heard of."""
    return f"user-{secrets.token_hex(3)}"


@pytest.fixture
def alice(server: Environment, user: str) -> Caller:
    """That user, in the groups dev and ops, by a certificate."""
    return Caller(server.add_user(user, ["dev", "ops"]))


@pytest.fixture
def cleanup(admin: Caller):
    paths: list[str] = []
    yield paths
    for path in reversed(paths):
        admin.ask("DELETE", path)


@pytest.fixture
def grant(admin: Caller, user: str, cleanup: list[str]):
    """Give the user cluster-wide rules, and wait until the server has heard of it."""

    async def grant(*rules: dict[str, Any], subject: dict[str, Any] | None = None, who: str = "") -> str:
        name = f"grant-{secrets.token_hex(3)}"
        # A rule of its own that says when the authorizer has seen the binding.
        seen = {"verbs": ["see"], "nonResourceURLs": [f"/{name}"]}
        admin.made(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [*rules, seen]})
        cleanup.append(f"{RBAC}/clusterroles/{name}")
        binding = bound(name, {"kind": "ClusterRole", "name": name}, subject or {"kind": "User", "name": user})
        admin.made(f"{RBAC}/clusterrolebindings", binding)
        cleanup.append(f"{RBAC}/clusterrolebindings/{name}")
        asked = {"user": who or user, "nonResourceAttributes": {"verb": "see", "path": f"/{name}"}}
        await eventually(lambda: may(admin, asked), timeout=LONGEST_WAIT)
        return name

    return grant
