"""A process that has modules loaded, and forks to run `main` of one of them: that takes 0.1 s of the processor in place of a second.

What it starts is a process of its own all the same: with its own arguments, folder, environment and exit code. It can be frozen and killed.

    python tests/fork_server.py MODULE…

It loads the modules first. They must leave nothing behind that a fork would copy: no thread, no event loop, no socket.

Protocol, one JSON object a line: in {"module": "ctrlruntime.__main__", "arguments": ["version"], "cwd": PATH, "env": {…}, "out": PATH,
"err": PATH}, out {"pid": 1}; {"pid": 1, "code": 0} when it ends.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import sys
import tempfile
import traceback
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace

_RUNS_MANIFESTS = "ctrlruntime.project.scaffold.writing"
"""The module that runs `ctrl manifests` at the end of `ctrl init`, `ctrl create` and others."""


def child(module: str, arguments: list[str], cwd: str, env: dict[str, str], out: str, err: str) -> None:
    """Become the process; never returns."""
    code = 99
    try:
        for descriptor, path, flags in (
            (0, os.devnull, os.O_RDONLY),
            (1, out, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
            (2, err, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        ):
            os.dup2(os.open(path, flags, 0o644), descriptor)
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        sys.dont_write_bytecode = bool(env.get("PYTHONDONTWRITEBYTECODE"))
        sys.path[0] = cwd  # as `python -m` has it
        sys.path[1:1] = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
        sys.argv = [module.removesuffix(".__main__"), *arguments]
        if writing := sys.modules.get(_RUNS_MANIFESTS):
            vars(writing)["subprocess"] = SimpleNamespace(run=run_again, DEVNULL=None)
        sys.exit(importlib.import_module(module).main())
    except SystemExit as end:
        code = int(end.code) if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as Python ends
        traceback.print_exc()
        code = 1
    finally:
        with contextlib.suppress(BaseException):
            gc.collect()  # so that what was not closed says so
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run_again(command: list[str], *, cwd: Path, env: dict[str, str], **_: object) -> CompletedProcess[str]:
    """Run `python -m ctrlruntime …`, which a command runs at its end, by a fork of the command's process."""
    module, *arguments = command[2:]
    loaded = [
        name for name, each in sys.modules.items() if (getattr(each, "__file__", None) or "").startswith(f"{cwd}/")
    ]
    assert not loaded, f"it would not load the project's modules again: {loaded}"
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        pid = os.fork()
        if not pid:
            child(f"{module}.__main__", arguments, str(cwd), env, str(out), str(err))
        _, status = os.waitpid(pid, 0)
        return CompletedProcess(command, os.waitstatus_to_exitcode(status), out.read_text(), err.read_text())


def tell(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main(modules: list[str]) -> None:
    for name in modules:
        importlib.import_module(name)
    gc.freeze()
    pending = b""
    children: dict[int, int] = {}
    while True:
        # A descriptor of a process is readable when the process has ended.
        readable, _, _ = select.select([0, *children.values()], [], [])
        for pid, descriptor in list(children.items()):
            if descriptor in readable:
                _, status = os.waitpid(pid, 0)
                os.close(children.pop(pid))
                tell(pid=pid, code=os.waitstatus_to_exitcode(status))
        if 0 not in readable:
            continue
        data = os.read(0, 65536)
        if not data:
            return
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            asked = json.loads(line)
            pid = os.fork()
            if not pid:
                child(**asked)
            children[pid] = os.pidfd_open(pid)
            tell(pid=pid)


if __name__ == "__main__":
    main(sys.argv[1:])
