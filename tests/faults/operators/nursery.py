"""Where operator processes of the tests are born: by a fork of a process that has Python and the package loaded.

An operator then begins in tens of milliseconds, so the moments of a test are moments of the operator, and many of them cost little. What is
started is a process of its own all the same: it can be frozen and killed, and has its own exit code.

Protocol, one JSON object a line: in {"program": "writer", "arguments": […], "output": PATH}, out {"pid": 1}; {"pid": 1, "code": 0} when it ends.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))


def load() -> None:
    """Import what an operator needs, and leave nothing behind that a fork would copy: no thread, no loop, no socket."""
    for name in (
        "tiny", "writer", "soaker", "aiohttp", "ctrlruntime.cache.cache", "ctrlruntime.leaderelection", "ctrlruntime.manager.manager",
        "ctrlruntime.manager.run", "ctrlruntime.rest.transport", "ctrlruntime.serving.server", "ctrlruntime.api.events.v1",
        "ctrlruntime.api.coordination.v1", "ctrlruntime.builder",
    ):  # fmt: skip
        importlib.import_module(name)
    gc.freeze()


def child(program: str, arguments: list[str], output: str) -> None:
    """Become the operator; never returns."""
    code = 99
    with Path(output).open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    try:
        importlib.import_module(program).main(arguments)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:  # noqa: BLE001 - it is written down and judged by the test
        traceback.print_exc()
        code = 1
    finally:
        with contextlib.suppress(BaseException):
            gc.collect()  # so that what was not closed says so
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def tell(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main() -> None:
    load()
    pending = b""
    children: set[int] = set()
    while True:
        readable, _, _ = select.select([0], [], [], 0.01 if children else None)
        for pid in list(children):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                children.remove(pid)
                tell(pid=pid, code=os.waitstatus_to_exitcode(status))
        if not readable:
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
            children.add(pid)
            tell(pid=pid)


if __name__ == "__main__":
    main()
