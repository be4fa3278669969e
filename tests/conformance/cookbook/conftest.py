"""The recipes of `examples/cookbook`, on the embedded server, and with --all on the real one.

| fixture | what it is |
|---|---|
| ``operator`` | runs a recipe: ``async with operator(website) as mgr:``; its role must grant all that it does |
| ``find`` | waits until an object is as a check wants it, with reads from the API server |
| ``gone`` | waits until an object does not exist |
| ``clock`` | the time, and ``clock.ahead`` moves it |
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api.object import kind_of
from ctrlruntime.install import CustomResourceDefinition
from ctrlruntime.testing import Environment, audit, eventually
from examples.cookbook.running import CONFIG


@pytest.fixture(scope="session", params=["embedded", pytest.param("real", marks=pytest.mark.thorough)])
def server(request: pytest.FixtureRequest) -> Environment:
    return request.getfixturevalue(f"{request.param}_server")


def kinds_of(recipe: ModuleType) -> list[type[ctrl.Object]]:
    """Return the kinds that a recipe defines."""
    return [
        kind
        for kind in vars(recipe).values()
        if isinstance(kind, type) and issubclass(kind, ctrl.Object) and kind.__module__ == recipe.__name__
    ]


async def uninstall(client: ctrl.Client, kinds: list[type[ctrl.Object]]) -> None:
    """Delete the CRDs while their conversion is served. Without it, no namespace with objects of these kinds could be deleted."""
    names = {f"{kind_of(kind).plural}.{kind_of(kind).group}" for kind in kinds}
    await ctrl.uninstall_crds(client, *kinds)

    async def are_gone() -> bool:
        found = [await client.get_or_none(CustomResourceDefinition, ctrl.NamespacedName("", name)) for name in names]
        return not any(found)

    await eventually(are_gone, timeout=LONGEST_WAIT)


@pytest.fixture
def operator(
    server: Environment, namespace: str, nodes: None, scheme: ctrl.Scheme
) -> Callable[..., contextlib.AbstractAsyncContextManager[ctrl.Manager]]:
    """Run a recipe in the namespace of the test.

    `setup` replaces that of the recipe, and `webhooks` registers its webhooks. Other keywords are those of `new_manager`.
    """

    @contextlib.asynccontextmanager
    async def run(
        recipe: ModuleType,
        setup: Callable[[ctrl.Manager], object] | None = None,
        *,
        webhooks: bool = False,
        **options: Any,
    ) -> AsyncGenerator[ctrl.Manager]:
        name = recipe.__name__.rpartition(".")[2]
        kinds = kinds_of(recipe)
        options = {"cache": ctrl.CacheOptions(namespaces=[namespace]), **options}
        if webhooks:
            options["webhook"] = ctrl.webhook.WebhookOptions(port=0, development=ctrl.webhook.DevelopmentMode())
        mgr = ctrl.new_manager(
            ctrl.get_config(str(server.kubeconfig_path)),
            scheme=ctrl.Scheme(*kinds),
            metrics_bind_address="0",
            **options,
        )
        scheme.register(*kinds)
        if kinds:
            await ctrl.install_crds(mgr.cluster.unfenced_client(), CONFIG / name / "crd" / "bases")
        (setup or recipe.setup)(mgr)
        with audit.Recorder() as recorder:
            async with ctrl.running(mgr):
                try:
                    yield mgr
                finally:
                    if webhooks and kinds:
                        await uninstall(mgr.cluster.unfenced_client(), kinds)
        role = CONFIG / name / "rbac" / "role.yaml"
        compared = audit.compare(recorder.used, audit.read_roles([role]) if role.exists() else [])
        assert not compared.missing, "\n".join(compared.lines(by=recorder.used))

    return run


@pytest.fixture
def scheme() -> ctrl.Scheme:
    """The kinds of the test's client: `operator` adds those of the recipe."""
    return ctrl.Scheme()


@pytest.fixture
async def client(server: Environment, scheme: ctrl.Scheme) -> AsyncIterator[ctrl.Client]:
    """A client of a user, without a cache."""
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)), scheme=scheme)
    yield cluster.unfenced_client()
    await cluster.close()


@pytest.fixture
def find(client: ctrl.Client) -> Callable[..., Any]:
    """Wait until an object is as wanted: `await find(core.Secret, key, lambda secret: "token" in secret.data)`."""

    async def wait(kind: type[ctrl.Object], key: Any, check: Callable[[Any], object] = lambda _: True) -> Any:
        async def look() -> ctrl.Object | None:
            found = await client.get_or_none(kind, key)
            return found if found is not None and check(found) else None

        return await eventually(look, timeout=LONGEST_WAIT)

    return wait


@pytest.fixture
def gone(client: ctrl.Client) -> Callable[..., Any]:
    """Wait until an object is deleted: `await gone(core.Secret, key)`."""

    async def wait(kind: type[ctrl.Object], key: Any) -> None:
        async def is_gone() -> bool:
            return await client.get_or_none(kind, key) is None

        await eventually(is_gone, timeout=LONGEST_WAIT)

    return wait


class Clock:
    """The time of a test. A timer that is already set does not move with it, so touch the object after a change of `ahead`."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()
