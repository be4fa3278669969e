"""`ctrl.run` as a process: signals, exit codes and what is written."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctrlruntime.manager import tune_gc
from ctrlruntime.manager.run import _Insistence

PROGRAM = """
import asyncio, sys
import ctrlruntime as ctrl
from ctrlruntime.errors import LeaderElectionLostError, TransportError

config = ctrl.Config(host="http://127.0.0.1:1")
mgr = ctrl.new_manager(config, metrics_bind_address="0", graceful_shutdown_timeout={grace})

async def main():
    print("running", flush=True)
{body}

mgr.add(main)
loop_factory = {loop}
ctrl.run(mgr, loop_factory=loop_factory)
"""

UVLOOP = "__import__('uvloop').new_event_loop"


class Process:
    def __init__(self, body: str, grace: float | None = 30.0, loop: str = "None") -> None:
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        program = PROGRAM.format(body=lines, grace=grace, loop=loop)
        self.popen = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.errors = ""

    def wait_running(self) -> None:
        assert self.popen.stdout is not None
        assert self.popen.stdout.readline() == "running\n"

    def end(self, *signals: signal.Signals, between: str = "") -> int:
        """Send the signals, the second once `between` was written to stdout, and return the exit code."""
        for number in signals:
            self.popen.send_signal(number)
            if between and number is signals[0]:
                assert self.popen.stdout is not None
                assert self.popen.stdout.readline().strip() == between
        _, self.errors = self.popen.communicate(timeout=120)
        return self.popen.returncode


@pytest.fixture
def start() -> Iterator[type[Process]]:
    started: list[Process] = []

    def begin(body: str, **options: object) -> Process:
        started.append(Process(body, **options))
        return started[-1]

    yield begin
    for process in started:
        if process.popen.poll() is None:
            process.popen.kill()
        process.popen.communicate()


on_both_loops = pytest.mark.parametrize("loop", ["None", UVLOOP], ids=["asyncio", "uvloop"])


@on_both_loops
def test_it_runs_on_the_loop_that_is_given(start, loop):
    process = start('print(type(asyncio.get_running_loop()).__module__.split(".")[0], flush=True)', loop=loop)
    process.wait_running()

    assert process.popen.stdout.readline().strip() == ("asyncio" if loop == "None" else "uvloop")
    assert process.end(signal.SIGTERM) == 0


@on_both_loops
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_with_code_0_and_no_error_line(start, number, loop):
    process = start("await asyncio.sleep(3600)", loop=loop)
    process.wait_running()

    assert process.end(number) == 0
    assert "Traceback" not in process.errors
    assert "ERROR" not in process.errors
    assert "signal received, stopping" in process.errors


@on_both_loops
def test_a_second_signal_ends_the_process_at_once_with_code_1(start, loop):
    process = start(
        """
while True:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        print("stopping", flush=True)
""",
        grace=None,
        loop=loop,
    )
    process.wait_running()

    assert process.end(signal.SIGTERM, signal.SIGINT, between="stopping") == 1
    assert "Traceback" not in process.errors


def test_a_blocked_event_loop_does_not_outlast_the_grace(start):
    process = start('import time; print("blocks", flush=True); time.sleep(3600)', grace=2.0)
    process.wait_running()
    assert process.popen.stdout.readline() == "blocks\n"

    assert process.end(signal.SIGTERM) == 1
    assert "exiting although the event loop is blocked" in process.errors
    assert '<string>"' in process.errors or "<string>:" in process.errors


@pytest.mark.parametrize(
    ("grace", "seconds", "code"),
    [(0, 4.9, None), (0, 5.0, 1), (2.0, 4.9, None), (30.0, 28.9, None), (30.0, 29.0, 1), (None, 3600.0, None)],
)
def test_how_long_an_event_loop_may_be_blocked_after_the_signal(after_a_signal, grace, seconds, code):
    exits, now = [], [100.0]
    insistence = after_a_signal(grace, exits.append, clock=lambda: now[0])
    insistence.stalled("app.py:7")
    now[0] += seconds
    insistence.stalled("app.py:7")

    assert exits == ([] if code is None else [code])


@pytest.fixture
def after_a_signal() -> Iterator[Callable[..., _Insistence]]:
    """Makes an `_Insistence` that has received a signal."""
    before = signal.getsignal(signal.SIGUSR2)

    def make(*args: object, **options: object) -> _Insistence:
        made = _Insistence(*args, **options)
        signal.signal(signal.SIGUSR2, lambda *_: None)
        made.hear(signal.SIGUSR2)
        signal.raise_signal(signal.SIGUSR2)
        return made

    yield make
    signal.signal(signal.SIGUSR2, before)


@on_both_loops
def test_a_second_signal_ends_a_process_whose_event_loop_is_blocked(start, loop):
    process = start('import time; print("blocks", flush=True); time.sleep(3600)', grace=None, loop=loop)
    process.wait_running()
    assert process.popen.stdout.readline() == "blocks\n"

    process.popen.send_signal(signal.SIGINT)
    time.sleep(0.2)  # two signals of one number at once are one
    assert process.end(signal.SIGINT) == 1
    assert "Traceback" not in process.errors


def test_a_short_block_at_the_signal_is_no_failure(start):
    process = start('import time; print("blocks", flush=True); time.sleep(1.5); await asyncio.sleep(3600)', grace=30.0)
    process.wait_running()
    assert process.popen.stdout.readline() == "blocks\n"

    assert process.end(signal.SIGTERM) == 0
    assert "ERROR" not in process.errors


def test_a_failure_of_ours_is_one_line_and_code_1(start):
    process = start("raise LeaderElectionLostError('the lease is lost')")

    assert process.end() == 1
    assert process.errors.splitlines()[-1] == "error: the lease is lost"
    assert "Traceback" not in process.errors


def test_several_failures_are_a_line_each(start):
    process = start(
        """
async def broken():
    raise TransportError('the connection is lost')
mgr.cluster.close = broken
raise LeaderElectionLostError('the lease is lost')
"""
    )

    assert process.end() == 1
    assert process.errors.splitlines()[-2:] == ["error: the lease is lost", "error: the connection is lost"]
    assert "Traceback" not in process.errors


def test_an_error_of_user_code_shows_its_traceback(start):
    process = start("raise LookupError('no luck')")

    assert process.end() == 1
    assert "Traceback" in process.errors
    assert "LookupError: no luck" in process.errors


def test_a_task_that_ignores_cancellation_does_not_keep_the_process(start):
    process = start(
        """
while True:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        pass
""",
        grace=0,
    )
    process.wait_running()

    assert process.end(signal.SIGTERM) == 0, process.errors
    assert "exiting although tasks still run" in process.errors


def test_a_lease_that_is_lost_ends_the_process_with_code_1(start, server, tmp_path: Path):
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(server.kubeconfig)
    namespace = server.create_namespace()
    program = f"""
import asyncio
import ctrlruntime as ctrl
from ctrlruntime.api import coordination

election = ctrl.LeaderElection("lost", namespace={namespace!r}, identity="me", lease_duration=3, renew_deadline=2, retry_period=1)
mgr = ctrl.new_manager(ctrl.get_config({str(kubeconfig)!r}), metrics_bind_address="0", leader_election=election)

async def take_away():
    client = mgr.cluster.unfenced_client()
    lease = await client.get(coordination.Lease, ctrl.NamespacedName({namespace!r}, "lost"))
    await client.patch(lease, ctrl.merge_patch({{"spec": {{"holderIdentity": "another"}}}}))
    await asyncio.sleep(3600)

mgr.add(take_away)
ctrl.run(mgr)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"error: the lease {namespace}/lost is lost: another holds it")
    assert "Traceback" not in done.stderr


@pytest.fixture
def collector() -> Iterator[None]:
    """Restores the garbage collector, which belongs to the whole process."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.usefixtures("collector")
def test_the_collector_is_set_up_for_a_process_that_runs_for_long() -> None:
    gc.set_threshold(700, 10, 10)
    tune_gc()
    assert gc.get_threshold() == (700, 10, 100)
    assert gc.get_freeze_count() > 10_000


@pytest.mark.usefixtures("collector")
def test_thresholds_of_the_users_are_kept() -> None:
    gc.set_threshold(5_000, 7, 3)
    tune_gc()
    assert gc.get_threshold() == (5_000, 7, 3)
