"""Failed tests: named at once, and with CI=true run once more, alone (`scripts/test`).

pytest names failures at the end only, and a run that is stopped does not reach its end. So `FailuresAtOnce` prints one line for each
failure when it happens, and the command that repeats the first of them at the end. It also keeps the failures in pytest's cache for
`Rerun`: this plugin (`--rerun`) prints the tests that failed in the whole run and pass alone. Such a test is unstable. It does not fail
the run, but more than `MOST` of them do.
"""

from __future__ import annotations

import shlex

import pytest

MOST = 3
"""How many unstable tests a run may have."""

_REPEATED = 10  # tests in the command that repeats the failed ones

_KEY = "ctrlruntime/failures"
_UNSTABLE = "ctrlruntime/unstable"


class FailuresAtOnce:
    """Prints one line for each failure, with the first line of its message."""

    def __init__(self, config):
        self._config = config
        self._messages: dict[str, str] = {}

    def pytest_runtest_logreport(self, report):
        if not report.failed:
            return
        crash = getattr(report.longrepr, "reprcrash", None)
        message = (crash.message if crash else str(report.longrepr)).strip().splitlines() or [""]
        self._messages.setdefault(report.nodeid, message[0])
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        terminal.line("")  # after the letters of the tests before
        terminal.write_line(f"failed: {report.nodeid}: {message[0]}")

    def pytest_terminal_summary(self, terminalreporter):
        if self._messages:
            terminalreporter.write_line(f"To repeat: scripts/test -n 0 {shlex.join(list(self._messages)[:_REPEATED])}")

    def pytest_sessionfinish(self):
        cache = getattr(self._config, "cache", None)
        if cache is not None and not self._config.getoption("rerun", default=False):
            cache.set(_KEY, self._messages)
            cache.set(_UNSTABLE, [])


class Rerun:
    """Runs the tests again that failed before (with --last-failed), and prints those that pass now as unstable."""

    def __init__(self, config):
        self._cache = config.cache
        self._before: dict[str, str] = config.cache.get(_KEY, {})
        if len(self._before) > MOST:
            pytest.exit(f"{len(self._before)} tests failed. Only up to {MOST} run again.", returncode=1)
        self._unstable: set[str] = set(config.cache.get(_UNSTABLE, []))
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self._failed.add(report.nodeid)
        elif report.when == "call" and report.passed:
            self._unstable.add(report.nodeid)

    def pytest_sessionfinish(self, session):
        self._unstable = {test for test in self._unstable if test in self._before and test not in self._failed}
        self._cache.set(_UNSTABLE, sorted(self._unstable))
        if set(self._before) - self._unstable:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        if self._unstable:
            terminalreporter.section("unstable: failed in the whole run, passed alone")
        for test in sorted(self._unstable):
            terminalreporter.write_line(f"unstable: {test}: {self._before[test]}")
        for test in sorted(set(self._before) - self._unstable - self._failed):
            terminalreporter.write_line(f"failed, and did not run again: {test}: {self._before[test]}")
