from __future__ import annotations

import json
import select
import signal
import socket
import subprocess
import sys
import time

import pytest

from ctrlruntime.apiserver import APIServer, Options, ServerThread
from ctrlruntime.errors import ConfigError

COMMAND = [sys.executable, "-m", "ctrlruntime.apiserver"]


def line(process, seconds=20):
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    return process.stdout.readline() if ready else ""


def test_the_command_says_ready_writes_the_kubeconfig_and_ends_on_sigterm(tmp_path):
    path = tmp_path / "config"
    with subprocess.Popen(
        [*COMMAND, "--kubeconfig", str(path), "--admin-token", "t0k"], stdout=subprocess.PIPE, text=True
    ) as process:
        ready = line(process)
        config = json.loads(path.read_text())
        process.send_signal(signal.SIGTERM)
        code = process.wait(20)

    assert ready == f"ready {config['clusters'][0]['cluster']['server']}\n"
    assert config["users"][0]["user"] == {"token": "t0k"}
    assert path.stat().st_mode & 0o777 == 0o600
    assert code == 0


def test_a_taken_port_is_one_line_and_exit_1(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [*COMMAND, "--kubeconfig", str(tmp_path / "c"), "--port", str(port)],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"error: cannot listen on 127.0.0.1:{port}: Address already in use; choose another --port, or 0 for a free one"
    ]


def test_an_unknown_controller_is_one_line_and_exit_1(tmp_path):
    done = subprocess.run(
        [*COMMAND, "--kubeconfig", str(tmp_path / "c"), "--controllers", "nonsense"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "there is no controller nonsense" in done.stderr


@pytest.mark.parametrize(
    "wrong", [{"port": 70000}, {"authorization": "maybe"}, {"history": 0}, {"pod_ready_delay": -1}]
)
def test_options_that_cannot_be_fail_at_once(wrong):
    with pytest.raises(ConfigError):
        Options(**wrong)


def test_a_thread_that_cannot_start_raises_where_it_was_started():
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigError, match="cannot listen"):
        ServerThread(Options(port=taken.getsockname()[1])).start()


def test_a_warm_start_is_quick():
    with ServerThread(Options(controllers=[])):
        pass
    begin = time.perf_counter()
    with ServerThread():
        took = time.perf_counter() - begin

    assert took < 1.0  # the bar is 0.15 s; benchmarks measure it on a quiet machine


def test_two_servers_in_one_process_do_not_meet(make):
    with ServerThread(Options(controllers=[])) as one, ServerThread(Options(controllers=[])) as two:
        first, second = make.client(one), make.client(two)
        first.made("/api/v1/namespaces/default/configmaps", make.config_map("a"))

        assert second.get("/api/v1/namespaces/default/configmaps/a").code == 404
        first.close()
        second.close()


async def test_start_and_stop_on_the_callers_loop_leave_nothing_behind():
    server = APIServer(Options(controllers=[]))
    await server.start()
    port = server.port
    await server.stop()

    with socket.create_server(("127.0.0.1", port)):
        assert server.url == f"https://127.0.0.1:{port}"


def test_always_allow_lets_everybody_in(make):
    with ServerThread(Options(controllers=[], authorization="always-allow")) as thread:
        anonymous = make.client(thread, token="")
        assert anonymous.get("/api/v1/namespaces").code == 200
        anonymous.close()
