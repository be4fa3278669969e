"""pytest fixtures for operators. pytest loads this module in every project, so it imports nothing before a fixture is used.

| fixture | scope | value |
|---|---|---|
| ``envtest`` | session | the running `Environment` |
| ``envtest_options`` | session | override it: keyword arguments of `Environment`, e.g. ``{"crds": "config/crd"}`` |
| ``namespace`` | function | the name of a new namespace, deleted after the test |
| ``fresh_envtest`` | function | ``envtest`` in its initial state; only for the embedded server, else the test is skipped |
| ``fault_proxy`` | function | a `FaultProxy` in front of ``envtest``, with its ``config`` |

``--envtest-backend=embedded|real|existing`` selects the server; several, with commas, run each test on each. Without it envtest's
environment variables decide; the default is the embedded server.

``--rbac-audit=ROLE.yaml[,ROLE.yaml]`` compares the permissions that managers use in the run with those in these files, prints both
differences at the end, and fails the run if there is one (see `ctrlruntime.testing.audit`). With ``rbac_audit = ROLE.yaml`` in the
configuration every run does this; a run of selected tests then fails only for missing permissions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from ctrlruntime.testing.audit import Comparison, Recorder
    from ctrlruntime.testing.environment import Environment
    from ctrlruntime.testing.faults import FaultProxy

__all__ = ["envtest", "envtest_options", "fault_proxy", "fresh_envtest", "namespace"]

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

    group.addoption(
        "--rbac-audit",
        metavar="FILE[,FILE]",
        default="",
        help="fail the run when its managers use permissions that the roles in these files lack, or do not use some they grant",
    )
    parser.addini("rbac_audit", "files with roles, as for --rbac-audit", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    asked = cast("str", config.getoption("--rbac-audit"))
    configured = cast("list[str]", config.getini("rbac_audit"))
    files = [file.strip() for text in ([asked] if asked else configured) for file in text.split(",") if file.strip()]
    if files:
        config.pluginmanager.register(_Audit(config, files, judges_unused=bool(asked)), "ctrlruntime-rbac-audit")


class _Audit:
    """Records the permissions of a run and compares them with roles at its end."""

    def __init__(self, config: pytest.Config, files: list[str], *, judges_unused: bool) -> None:
        from ctrlruntime.errors import ConfigError
        from ctrlruntime.testing.audit import Recorder, read_roles

        if config.getoption("numprocesses", None):
            raise pytest.UsageError("--rbac-audit sees the calls of one process: run without -n")
        try:
            self._roles = read_roles(config.rootpath / file for file in files)
        except ConfigError as error:
            raise pytest.UsageError(f"--rbac-audit: {error}") from error
        self._files = files
        self._judges_unused = judges_unused or not _is_selection(config)
        self._recorder: Recorder = Recorder()
        self._comparison: Comparison | None = None
        self._recorder.__enter__()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        from dataclasses import replace

        from ctrlruntime.testing.audit import compare

        comparison = compare(self._recorder.used, self._roles)
        # What failed before it came to its calls says nothing about those.
        if exitstatus != pytest.ExitCode.OK or not self._judges_unused:
            comparison = replace(comparison, unused=())
        self._comparison = comparison
        if not comparison.is_even and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._comparison is None:
            return
        terminalreporter.section(f"rbac audit of {', '.join(self._files)}")
        for line in self._comparison.lines(by=self._recorder.used):
            terminalreporter.line(line)
        if not self._recorder.used:
            terminalreporter.line("no call of a manager was seen: do these tests run one?")
        elif self._comparison.unused:
            terminalreporter.line(
                "If the operator needs an unused permission, add a test that uses it. If not, narrow the role: "
                '@ctrl.rbac(groups="…", resources="…", verbs="…")'
            )

        if not self._comparison.is_even:
            terminalreporter.line("rbac audit failed", red=True)

    def pytest_unconfigure(self) -> None:
        self._recorder.__exit__()


def _is_selection(config: pytest.Config) -> bool:
    """Whether the command line says which tests to run."""
    option = config.option
    chosen = option.keyword or option.markexpr or getattr(option, "lf", False) or getattr(option, "deselect", None)
    return bool(chosen) or config.args_source is pytest.Config.ArgsSource.ARGS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    backends = _asked(metafunc.config)
    if len(backends) > 1 and "envtest" in metafunc.fixturenames:
        metafunc.parametrize("envtest", backends, indirect=True, scope="session")


@pytest.fixture(scope="session")
def envtest_options() -> dict[str, Any]:
    """Keyword arguments for the `Environment` of `envtest`; override it in a conftest."""
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
    """The name of a separate namespace for this test."""
    name = envtest.create_namespace()
    yield name
    envtest.delete_namespace(name)


@pytest.fixture
def fresh_envtest(envtest: Environment) -> Environment:
    """The API server in its initial state, for a test that reads a whole cluster; it takes milliseconds.

    If a test also uses `namespace`, name it after this fixture.
    """
    if envtest.backend != "embedded":
        pytest.skip(f"only the embedded server can be reset, and this is the {envtest.backend} one")
    envtest.reset()
    return envtest


@pytest.fixture
def fault_proxy(envtest: Environment) -> Iterator[FaultProxy]:
    """A proxy in front of the API server that injects faults."""
    from ctrlruntime.testing.faults import FaultProxy

    with FaultProxy(envtest) as proxy:
        yield proxy


def _asked(config: pytest.Config) -> tuple[str, ...]:
    return cast("tuple[str, ...]", config.getoption("--envtest-backend"))


def _backends(text: str) -> tuple[str, ...]:
    import argparse

    names = tuple(text.split(","))
    if unknown := [name for name in names if name not in _BACKENDS]:
        raise argparse.ArgumentTypeError(f"no backend {unknown[0]!r}; take one of {', '.join(_BACKENDS)}")
    return names
