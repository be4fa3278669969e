"""SIGTERM at any moment of start-up and work: the process ends inside its grace, with code 0, and says nothing but that it stopped."""

from __future__ import annotations

import asyncio
import functools
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable

import pytest
from cases import on_both_servers
from operators.process import FOLDER, ROOT, Operators, Process
from servers import LONGEST_WAIT

from ctrlruntime.testing import eventually
from ctrlruntime.testing.faults import FaultProxy

GRACE = 5.0
RELEASE = 5.0  # seconds the release of the lease is tried for, when no answer comes
STRICT = ("-X", "dev", "-W", "error")
COUNT = int(os.environ.get("CTRLRUNTIME_MOMENTS", "12"))

# Judged is what the other processes say; sockets that the proxy drops while it refuses connections are of the kit.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]


@pytest.fixture
def parents(server, namespace):
    """Enough to do for the operator."""
    for number in range(10):
        body = {
            "metadata": {"name": f"parent-{number}", "labels": {"example.com/role": "parent"}},
            "data": {"number": str(number)},
        }
        server.connection.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", body)


@pytest.fixture(scope="module")
def operators():
    with Operators(*STRICT) as operators:
        yield operators


@pytest.fixture
def start(server, namespace, parents, tmp_path, operators):
    """Starts an operator; none outlives the test."""
    started: list[Process] = []

    def start(identity: str, *more: str, kubeconfig: object = None, grace: float = GRACE) -> Process:
        given = flags(kubeconfig or server.kubeconfig_path, namespace, grace)
        started.append(operators.start("tiny", tmp_path, *given, "--identity", identity, *more))
        return started[-1]

    yield start
    for process in started:
        process.kill()


def flags(kubeconfig: object, namespace: str, grace: float = GRACE) -> list[str]:
    return ["--kubeconfig", str(kubeconfig), "--namespace", namespace, "--grace", str(grace), "--leader-elect"]


def complaints(text: str) -> list[str]:
    """Return the lines that have no place in the output of a planned stop; warnings of what was hindered before it have."""
    wrong = re.compile(
        r'Traceback|"level":"error"|ERROR|ResourceWarning|Unclosed|never awaited|never retrieved|was destroyed|^error:'
    )
    return [line for line in text.splitlines() if wrong.search(line)]


class Run:
    """One operator that gets a SIGTERM `moment` seconds after it was started (or said `after`), and how it ended."""

    def __init__(self, process: Process, moment: float, after: str) -> None:
        self.process = process
        self.moment = moment
        self.after = after
        self.was_caught = False

    async def wait(self) -> str:
        """Return what was wrong; empty when nothing was."""
        while self.after not in self.process.text() and self.process.exit_code is None:  # noqa: ASYNC110 - a process says it
            await asyncio.sleep(0.002)
        await asyncio.sleep(self.moment)
        if self.process.exit_code is not None:
            return self._report([f"it ended by itself with code {self.process.exit_code}"])
        # Before a process has told the kernel that it handles the signal, the signal simply ends it.
        self.was_caught = self.process.catches(signal.SIGTERM)
        self.process.send(signal.SIGTERM)
        try:
            code = await self.process.ends(within=GRACE + LONGEST_WAIT)
        except AssertionError:
            return self._report([f"it ran for more than {GRACE + LONGEST_WAIT:g} s"])
        wrong = complaints(self.process.text())
        if code not in ({0} if self.was_caught else {0, -signal.SIGTERM}):
            wrong.insert(0, f"exit code {code}")
        return self._report(wrong)

    def _report(self, wrong: list[str]) -> str:
        text = self.process.text()[-3000:]
        return (
            f"SIGTERM after {self.after.strip() or 'the start'} and {self.moment * 1000:.0f} ms: {'; '.join(wrong)}\n{text}"
            if wrong
            else ""
        )


async def run_all(
    start: Callable[[str], Process],
    moments: Iterable[float],
    *,
    after: str = "",
    at_once: int = 4,
) -> list[Run]:
    """Start an operator for each moment, some side by side. Raises: AssertionError that shows those that ended badly."""
    runs: list[Run] = []
    wrong: list[str] = []
    left = iter(moments)

    async def work() -> None:
        for moment in left:
            run = Run(start(f"tiny-{moment:g}"), moment, after)
            runs.append(run)
            if text := await run.wait():
                wrong.append(text)

    await asyncio.gather(*(work() for _ in range(at_once)))
    assert not wrong, f"{len(wrong)} of {len(runs)} ended badly\n" + "\n\n".join(wrong[:3])
    return runs


async def test_sigterm_at_any_moment_is_a_clean_end(server, start, request):
    # The process is the same on both servers, and so are the moments: on the real one a third of them.
    count = COUNT if server.backend == "embedded" or request.config.getoption("--all") else COUNT // 3
    early = await run_all(start, (0.2 * number / (count // 4) for number in range(count // 4)))
    # From when the manager is about to start: everything it waits for lies in the second after that.
    runs = await run_all(start, (1.0 * number / count for number in range(count)), after="begin\n")

    assert len(early) + len(runs) == count // 4 + count
    assert sum(run.was_caught for run in runs) > count / 2


# What the server answers does not get through the proxy, whichever server it is.
@pytest.mark.parametrize(
    ("server", "fault"),
    on_both_servers(["black_hole", "refuse", "stall", "slow_body"], real=[]),
    indirect=["server"],
)
async def test_sigterm_while_the_server_does_not_answer(server, start, fault):
    with FaultProxy(server) as proxy:
        begin = functools.partial(start, kubeconfig=proxy.kubeconfig_path)
        with getattr(proxy, fault)():
            await run_all(begin, (0.1, 0.3, 0.6, 1.0), after="begin\n")


@pytest.mark.parametrize(
    ("server", "fault"), on_both_servers(["black_hole", "refuse", "stall"], real=["stall"]), indirect=["server"]
)
async def test_sigterm_after_the_server_has_stopped_to_answer(server, start, fault):
    with FaultProxy(server) as proxy:
        process = start("cut-off", kubeconfig=proxy.kubeconfig_path, grace=1.0)
        await process.prints("starting workers")
        with getattr(proxy, fault)():
            await asyncio.sleep(0.5)
            process.send(signal.SIGTERM)

            # The lease cannot be given back, and says so; the process ends all the same, and as planned.
            assert await process.ends(within=1.0 + RELEASE + LONGEST_WAIT) == 0
    assert "Traceback" not in process.text()


async def test_a_lease_that_is_lost_during_a_planned_stop_does_not_fail_it(server, start):
    with FaultProxy(server) as proxy:
        process = start("loses", "--hang", "--lease", "8", kubeconfig=proxy.kubeconfig_path, grace=20.0)
        await process.prints("hanging")
        with proxy.black_hole():
            process.send(signal.SIGTERM)

            # The lease runs out before the grace does, and cuts it short.
            assert await process.ends(within=120) == 0
    assert "lease lost during shutdown" in process.text()
    assert complaints(process.text()) == []


async def test_a_process_from_its_first_line_on_ends_cleanly(server, namespace, parents, tmp_path):
    """Not forked: the interpreter is started, everything is imported, and it says more about what was not closed."""
    output = tmp_path / "output"
    with output.open("w") as file:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *STRICT, str(FOLDER / "tiny.py"), *flags(server.kubeconfig_path, namespace),
            cwd=ROOT, stdout=file, stderr=file, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
    try:
        await eventually(lambda: "starting workers" in output.read_text())
        process.send_signal(signal.SIGTERM)

        assert await asyncio.wait_for(process.wait(), GRACE + LONGEST_WAIT) == 0
        assert complaints(output.read_text()) == []
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
