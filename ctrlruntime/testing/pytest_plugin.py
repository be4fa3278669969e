"""Fixtures for tests of an operator. pytest loads this in every run of every project that has ctrlruntime installed,
so it imports nothing before a fixture is used.

| fixture | scope | what it is |
|---|---|---|
| ``envtest`` | session | the running `Environment` |
| ``envtest_options`` | session | override it: keyword arguments of `Environment`, e.g. ``{"crds": "config/crd"}`` |
| ``namespace`` | function | the name of a fresh namespace, deleted after the test |

``--envtest-backend=embedded|real|existing`` says which server; several, with commas, run each test on each. Without
it envtest's environment variables decide, and without those it is the embedded server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from ctrlruntime.testing.environment import Environment

__all__ = ["envtest", "envtest_options", "namespace"]

_BACKENDS = ("embedded", "real", "existing")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ctrlruntime")
    group.addoption(
        "--envtest-backend",
        metavar="NAME[,NAME]",
        type=_backends,
        default=(),
        help="the API server of the `envtest` fixture: embedded, real or existing; several run each test on each",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    backends = _asked(metafunc.config)
    if len(backends) > 1 and "envtest" in metafunc.fixturenames:
        metafunc.parametrize("envtest", backends, indirect=True, scope="session")


@pytest.fixture(scope="session")
def envtest_options() -> dict[str, Any]:
    """Keyword arguments for the `Environment` behind `envtest`; override it in a conftest."""
    return {}


@pytest.fixture(scope="session")
def envtest(request: pytest.FixtureRequest, envtest_options: dict[str, Any]) -> Iterator[Environment]:
    """A running API server, one for the whole session."""
    from ctrlruntime.testing.environment import Environment

    asked = _asked(request.config)
    backend: str | None = getattr(request, "param", None) or (asked[0] if asked else None)
    options: dict[str, Any] = {**envtest_options, "backend": backend} if backend else envtest_options
    with Environment(**options) as environment:
        yield environment


@pytest.fixture
def namespace(envtest: Environment) -> Iterator[str]:
    """The name of a namespace that this test has for itself."""
    name = envtest.create_namespace()
    yield name
    envtest.delete_namespace(name)


def _asked(config: pytest.Config) -> tuple[str, ...]:
    return cast("tuple[str, ...]", config.getoption("--envtest-backend"))


def _backends(text: str) -> tuple[str, ...]:
    import argparse

    names = tuple(text.split(","))
    if unknown := [name for name in names if name not in _BACKENDS]:
        raise argparse.ArgumentTypeError(f"no backend {unknown[0]!r}; take one of {', '.join(_BACKENDS)}")
    return names
