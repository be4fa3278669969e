from __future__ import annotations

import json
import select
import signal
import socket
import subprocess
import sys

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.apiserver import APIServer, Options, ServerThread
from ctrlruntime.apiserver.command import main, options_from, parser
from ctrlruntime.errors import ConfigError

pytestmark = pytest.mark.usefixtures("runs_main")

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
        code = process.wait(LONGEST_WAIT)

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
            timeout=120,
            check=False,
        )

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"error: cannot listen on 127.0.0.1:{port}: Address already in use. Use another --port, or 0 for a free one"
    ]


def test_ctrl_c_ends_it_with_code_0_too(tmp_path):
    with subprocess.Popen(
        [*COMMAND, "--kubeconfig", str(tmp_path / "c")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert line(process).startswith("ready https://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        assert process.wait(LONGEST_WAIT) == 0


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        (
            ["--enable-admission-plugins", "Priority", "--disable-admission-plugins", "Priority"],
            1,
            "admission plugin Priority is both enabled and disabled. Remove one of the two",
        ),
        (["--controllers", "nonsense"], 1, "controller nonsense does not exist. Use one of garbage-collector"),
        (["--port", "70000"], 1, "port must be 0 (a free port) or 1 to 65535, not 70000"),
        (
            ["--port", "http"],
            2,
            "argument --port: 'http' is not an integer. See python -m ctrlruntime.apiserver --help",
        ),
        (["--history", "0"], 1, "history must be at least 1"),
        (["--history", "few"], 2, "argument --history: 'few' is not an integer"),
        (["--pod-ready-delay", "-1"], 1, "pod_ready_delay must be a number of seconds of 0 or more"),
        (["--pod-ready-delay", "nan"], 1, "pod_ready_delay must be a number of seconds of 0 or more"),
        (["--pod-ready-delay", "1m"], 2, "argument --pod-ready-delay: '1m' is not a number of seconds"),
        (["--authorization", "maybe"], 2, "argument --authorization: invalid choice: 'maybe'"),
        (["--data", "/nowhere/at/all"], 1, "the folder of the data file, /nowhere/at, does not exist"),
        (["--data", "/dev"], 1, "the data file /dev is a folder"),
        (["--contr", "none"], 2, "unrecognized arguments: --contr none"),
        (["shim"], 2, "unrecognized arguments: shim"),
    ],
)
def test_a_value_that_cannot_be_is_one_line(given, code, message, tmp_path, capsys):
    try:
        found = main(["--kubeconfig", str(tmp_path / "c"), *given])
    except SystemExit as ended:
        found = ended.code

    said = capsys.readouterr().err
    assert found == code
    assert len(said.splitlines()) == 1
    assert said.startswith("error: ")
    assert message in said
    assert not (tmp_path / "c").exists()


def test_a_kubeconfig_that_cannot_be_written_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")

    assert main(["--controllers", "none", "--kubeconfig", str(tmp_path / "file" / "config")]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: cannot write the kubeconfig {tmp_path}/file/config: ")
    assert len(said.splitlines()) == 1


def test_without_a_kubeconfig_it_says_what_is_missing(capsys):
    with pytest.raises(SystemExit) as ended:
        main([])

    assert ended.value.code == 2
    assert "the following arguments are required: --kubeconfig" in capsys.readouterr().err


def test_help_says_what_every_flag_does(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])

    said = capsys.readouterr().out
    assert ended.value.code == 0
    for action in parser()._actions:
        assert action.help
    assert "shim DIR" in said
    assert "garbage-collector" in "".join(said.split())


def test_the_flags_become_options():
    given = "--kubeconfig k --port 1 --data d --admin-token t --authorization always-allow --controllers job,kubelet"
    given += " --no-workloads --no-nodes --pod-ready-delay 1.5 --history 7"
    given += " --enable-admission-plugins ServiceAccount --disable-admission-plugins Priority,LimitRanger"

    assert options_from(parser().parse_args(given.split())) == Options(
        port=1,
        data="d",
        admin_token="t",
        authorization="always-allow",
        controllers=("job", "kubelet"),
        workloads=False,
        nodes=False,
        pod_ready_delay=1.5,
        history=7,
        enabled_admission=("ServiceAccount",),
        disabled_admission=("Priority", "LimitRanger"),
    )
    assert options_from(parser().parse_args(["--kubeconfig", "k"])) == Options()
    assert options_from(parser().parse_args(["--kubeconfig", "k", "--metrics"])) == Options(metrics=True)
    assert options_from(parser().parse_args(["--kubeconfig", "k", "--controllers", "none"])).controllers == ()


@pytest.mark.parametrize("action", ["enable", "disable"])
def test_an_unknown_admission_plugin_is_named_with_those_there_are(action):
    given = ["--kubeconfig", "k", f"--{action}-admission-plugins", "Priority,Priorities"]

    with pytest.raises(ConfigError, match=r"plugin Priorities does not exist. Use one of AlwaysAdmit, .*, Priority, "):
        options_from(parser().parse_args(given))


def test_data_of_the_command_outlives_it_with_its_address_and_its_token(tmp_path):
    command = [*COMMAND, "--controllers", "none", "--data", str(tmp_path / "data"), "--kubeconfig", str(tmp_path / "c")]
    configs = []
    for _ in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert line(process).startswith("ready ")
            configs.append((tmp_path / "c").read_text())
            process.terminate()
            assert process.wait(LONGEST_WAIT) == 0

    assert configs[0] == configs[1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": 70000},
        {"authorization": "maybe"},
        {"history": 0},
        {"pod_ready_delay": -1},
        {"pod_ready_delay": float("nan")},
        {"address": "localhost"},
        {"service_network": "10.0.0.0/33"},
        {"service_network": "10.0.0.0/31"},
    ],
)
def test_options_that_cannot_be_fail_at_once(wrong):
    with pytest.raises(ConfigError):
        Options(**wrong)


def test_a_thread_that_cannot_start_raises_where_it_was_started():
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigError, match="cannot listen"):
        ServerThread(Options(port=taken.getsockname()[1])).start()


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
