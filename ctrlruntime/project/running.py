"""The operator as a child process: starts it, forwards signals, and restarts it when its code changes."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

from ctrlruntime.errors import ConfigError, CtrlError
from ctrlruntime.signals import handled

__all__ = ["DEBUG_ADDRESS", "Operator", "debug_address_file", "forward_port", "install_definitions", "source_folder"]

DEBUG_ADDRESS: Final = ".ctrlruntime/debug-address"
"""The file of a project that has the address of the debug pages, while `ctrl run` runs its operator."""

_POLL: Final = 0.2  # seconds between looks at the child and at the files
_GRACE: Final = 40.0  # seconds for a child to end before it is killed; a manager gives up by itself after 30

_Snapshot = Mapping[Path, int]


def source_folder(package: str) -> Path:
    """Return the folder of a package's modules. Raises: ConfigError for a package that is not there or cannot be run."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not folders:
        raise ConfigError(f"package {package} does not exist. Use its dotted name, and run from its folder")
    if not Path(folders[0], "__main__.py").is_file():
        raise ConfigError(f"cannot run {package}: it has no __main__.py")
    return Path(folders[0])


@contextlib.contextmanager
def debug_address_file(folder: Path) -> Generator[Path]:
    """Yield the absolute path of the project's file for the address of the debug pages, and remove the file at the end."""
    file = folder.absolute() / DEBUG_ADDRESS
    with contextlib.suppress(OSError):  # a folder that cannot be written: the operator logs it
        file.parent.mkdir(exist_ok=True)
    try:
        yield file
    finally:
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)  # an operator that was killed leaves it


def forward_port(name: str = "deployment/NAME", port: int = 8082, *, namespace: str = "") -> str:
    """Return the advice to read the debug pages of an operator in a cluster through a forwarded port."""
    command = f"kubectl {f'-n {namespace} ' if namespace else ''}port-forward {name} {port}"
    return f"forward the port with `{command}`, and pass --address 127.0.0.1:{port}"


def install_definitions(package: str, flags: Sequence[str], *, folder: Path, environ: Mapping[str, str]) -> str:
    """Install the definitions of a package as its files are now, by a process of its own, and return what that printed.

    Raises: CtrlError with its one line.
    """
    command = [sys.executable, "-m", "ctrlruntime", "install", "--module", package, *flags]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"ctrl install exited with code {done.returncode}"]
        errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        raise CtrlError((errors or lines)[-1])
    return done.stdout


class Operator:
    """Runs a command until it ends by itself or a signal ends it.

    `prepare` is called before each start; `accompany` again and again while the child runs, until it returns True. With `watched` the child
    is started again whenever a Python file in that folder changes, and one that ended waits for that.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environ: Mapping[str, str],
        prepare: Callable[[], None] = lambda: None,
        accompany: Callable[[], bool] = lambda: True,
        watched: Path | None = None,
        say: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._command = list(command)
        self._folder = folder
        self._environ = dict(environ)
        self._prepare = prepare
        self._accompany = accompany
        self._watched = watched
        self._say = say
        self._child: subprocess.Popen[bytes] | None = None
        self._is_asked = False

    def run(self) -> int:
        """Run, and return the exit code: the child's, 128 and the number for one that a signal killed. Raises: what `prepare` raises."""
        with handled(self._pass_on):
            while True:
                files = self._files()
                code = self._run_once(files)
                if self._watched is None or self._is_asked:
                    return code if code is not None else 0
                if code is not None:
                    self._say(f"the operator exited with code {code}. It restarts when a file changes")
                    self._wait_for_change(files)
                if self._is_asked:
                    return code or 0
                self._say("restarting, because a file changed")

    def _run_once(self, files: _Snapshot) -> int | None:
        """Run the child until it ends, and return its code; None when a file changed before."""
        try:
            self._prepare()
        except CtrlError as error:
            if self._watched is None:
                raise
            self._say(f"error: {error}")
            return 1
        if self._is_asked:
            return 0
        # A group of its own: Ctrl-C reaches this process alone, which passes it on once. Twice would mean "at once".
        self._child = subprocess.Popen(  # noqa: S603 - the user's own operator
            self._command, cwd=self._folder, env=self._environ, process_group=0
        )
        is_accompanied = False
        try:
            while (code := self._ended(_POLL)) is None:
                if not self._is_asked and self._files() != files:
                    return None
                is_accompanied = is_accompanied or self._is_asked or self._accompany()
            return code if code >= 0 else 128 - code
        finally:
            self._end()

    def _ended(self, seconds: float) -> int | None:
        assert self._child is not None
        try:
            return self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def _end(self) -> None:
        if self._child is None:
            return
        if self._child.poll() is None:
            self._child.terminate()
            if self._ended(_GRACE) is None:
                self._child.kill()
                self._child.wait()
        self._child = None

    # Files

    def _files(self) -> _Snapshot:
        found: dict[Path, int] = {}
        for path in self._watched.rglob("*.py") if self._watched is not None else ():
            with contextlib.suppress(OSError):  # an editor replaces files
                found[path] = path.stat().st_mtime_ns
        return found

    def _wait_for_change(self, files: _Snapshot) -> None:
        while not self._is_asked and self._files() == files:
            time.sleep(_POLL)

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        """Pass a signal on to the child, and end with it."""
        self._is_asked = True
        if self._child is not None and self._child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, number)
