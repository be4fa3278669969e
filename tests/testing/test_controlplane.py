"""The real binaries: they start, they are complete, and nothing is left of them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest
from servers import LONGEST_WAIT

from ctrlruntime.errors import NotFound, TransportError
from ctrlruntime.testing import eventually
from ctrlruntime.testing.controlplane import KUBERNETES_VERSION, ControlPlane, Programs

MODULE = Path(__file__).parent.parent / "controlplane"


def holders(text: str) -> list[psutil.Process]:
    """The processes whose command line holds `text`."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(text in argument for argument in process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return [process for process in found if process.pid != os.getpid()]


def program(folder: Path, name: str, code: str) -> Path:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{textwrap.dedent(code)}")
    path.chmod(0o755)
    return path


def test_the_version_is_the_one_the_module_pins():
    pinned = re.findall(r"^\s*k8s\.io/kubernetes (\S+)$", (MODULE / "go.mod").read_text(), re.MULTILINE)

    assert pinned == [KUBERNETES_VERSION]


def test_a_second_build_finds_the_first(real_programs):
    if not (real_programs.etcd.parent / ".built-from").exists():
        pytest.skip("the binaries in use are not of our build")

    done = subprocess.run([MODULE / "build"], capture_output=True, text=True, timeout=LONGEST_WAIT, check=True)

    assert done.stdout.startswith(f"control plane {KUBERNETES_VERSION}: /")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_build_without_go_says_where_to_get_it(tmp_path):
    environ = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}

    done = subprocess.run([sys.executable, MODULE / "build"], capture_output=True, text=True, env=environ, check=False)

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Go is not installed; get it at" in done.stderr


def test_the_version_of_the_server_is_the_pinned_one(real_server):
    assert real_server.connection.request("GET", "/version")["gitVersion"] == KUBERNETES_VERSION


async def test_the_controller_manager_collects_garbage(real_server):
    path = f"/api/v1/namespaces/{real_server.create_namespace()}/configmaps"
    owner = real_server.connection.request("POST", path, {"metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    real_server.connection.request("POST", path, {"metadata": {"name": "child", "ownerReferences": [reference]}})

    real_server.connection.request("DELETE", f"{path}/owner")

    def gone() -> bool:
        with pytest.raises(NotFound):
            real_server.connection.request("GET", f"{path}/child")
        return True

    assert await eventually(gone)


async def test_the_controller_manager_ends_namespaces(real_server):
    name = real_server.create_namespace()

    real_server.delete_namespace(name)
    real_server.delete_namespace(name)  # a second time is not an error

    def gone() -> bool:
        with pytest.raises(NotFound):
            real_server.connection.request("GET", f"/api/v1/namespaces/{name}")
        return True

    assert await eventually(gone)


def test_stop_leaves_no_process_and_no_file(own_real_server):
    environment = own_real_server().start()
    plane = environment._server._plane
    folder = str(plane.folder)
    assert len(holders(folder)) == 4  # two programs and their supervisors

    environment.stop()

    assert holders(folder) == []
    assert not Path(folder).exists()


PARENT = """
import os, sys, time
from ctrlruntime.testing.controlplane import ControlPlane, find_programs

plane = ControlPlane(find_programs(os.environ))
plane.start()
print(plane.folder, flush=True)
sys.stdin.read()
"""


async def test_nothing_is_left_when_the_process_is_killed(real_programs):
    with subprocess.Popen(  # noqa: ASYNC220 - it stands for a test run
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        folder = parent.stdout.readline().strip()
        assert len(holders(folder)) == 6

        parent.send_signal(signal.SIGKILL)
        parent.wait()

    assert await eventually(lambda: not holders(folder) and not Path(folder).exists())


async def test_the_program_dies_with_its_supervisor(tmp_path):
    sleeper = program(tmp_path, "sleeper", "import time; time.sleep(60)")
    supervisor = Path(sys.modules[ControlPlane.__module__].__file__).with_name("_supervisor.py")
    with subprocess.Popen(  # noqa: ASYNC220 - as ControlPlane starts it
        [sys.executable, "-I", supervisor, tmp_path, "5", sleeper, "mark-4711"], stdin=subprocess.PIPE
    ) as process:
        await eventually(lambda: len(holders("mark-4711")) == 2)

        process.kill()

    if sys.platform == "linux":
        assert await eventually(lambda: not holders("mark-4711"))


def test_a_program_that_ignores_the_request_to_end_is_killed(tmp_path):
    code = """
        import signal, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("ready", flush=True)
        time.sleep(3600)
    """
    stubborn = program(tmp_path, "stubborn", code)
    supervisor = Path(sys.modules[ControlPlane.__module__].__file__).with_name("_supervisor.py")
    with subprocess.Popen(
        [sys.executable, "-I", supervisor, tmp_path, "0.2", stubborn], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"ready\n"

        process.stdin.write(b"\n")
        process.stdin.close()

        assert process.wait(120) == 128 + signal.SIGKILL
        assert tmp_path.exists()  # the parent lives: it removes the folder itself


def test_a_program_that_ends_early_is_named_with_its_log(tmp_path):
    etcd = program(tmp_path, "etcd", "import sys; sys.exit('no such flag: --data-dir')")

    with pytest.raises(TransportError, match=r"etcd ended before it was ready; it wrote:\nno such flag: --data-dir"):
        ControlPlane(Programs(etcd, etcd, None)).start()


def test_a_taken_port_is_tried_again_with_another(tmp_path):
    ports = tmp_path / "ports"
    code = f"""
        import sys
        with open({str(ports)!r}, "a") as file:
            file.write(sys.argv[2] + chr(10))
        sys.exit("listen tcp: bind: address already in use")
    """
    etcd = program(tmp_path, "etcd", code)

    with pytest.raises(TransportError, match="address already in use"):
        ControlPlane(Programs(etcd, etcd, None)).start()

    tried = ports.read_text().split()
    assert len(tried) == 5
    assert len(set(tried)) > 1


def test_a_program_that_does_not_get_ready_ends_with_the_variable_to_set(tmp_path):
    etcd = program(tmp_path, "etcd", "import time; print('electing', flush=True); time.sleep(60)")

    with pytest.raises(TransportError, match=r"(?s)not ready after 0.5 s.*CONTROLPLANE_START_TIMEOUT.*electing"):
        ControlPlane(Programs(etcd, etcd, None), start_timeout=0.5).start()

    assert holders(str(etcd)) == []
