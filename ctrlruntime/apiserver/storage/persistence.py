"""The data file: what is stored survives a restart, in one SQLite file of the standard library.

Takes the store's writes as bytes and hands them back at the next start. The loop notes a write in a dict; a thread writes to the file, one
transaction for all that waits. A transaction holds whole turns of the loop: a write that consists of several (a definition and its
status) is in the file as a whole or not at all. A response is sent after `committed`, so the death of the process loses nothing that
was answered; the death of the machine loses what its disk had not taken.

History is not kept. The file is locked while it is open: one server at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sqlite3
import stat
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from ctrlruntime.errors import ConfigError
from ctrlruntime.log import get_logger

__all__ = ["DataFile", "Stored"]

FORMAT: Final = 1
"""Counts changes of the tables; a file of a higher format is of a newer version of this package."""
_APPLICATION: Final = 0x6374726C  # "ctrl"; in the file's header, so that a database of something else is seen
_LOCK_WAIT: Final = 1.0
"""Seconds to wait for a server that is just ending."""
_RETRY: Final = 1.0
"""Seconds until a failed transaction is tried again."""
_OURS: Final = stat.S_IRUSR | stat.S_IWUSR
_FURTHER: Final = ("-wal", "-shm", "-journal")
"""The suffixes of the files that SQLite keeps next to a database."""
_TABLES: Final = """
CREATE TABLE objects (
    api_group TEXT NOT NULL, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    revision INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (api_group, resource, namespace, name)
);
CREATE TABLE state (name TEXT PRIMARY KEY, value BLOB NOT NULL);
"""
_PUT: Final = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?)"
_REMOVE: Final = "DELETE FROM objects WHERE api_group = ? AND resource = ? AND namespace = ? AND name = ?"
_REMEMBER: Final = "INSERT OR REPLACE INTO state VALUES (?, ?)"

Name: TypeAlias = tuple[str, str, str, str]
"""Group, plural, namespace, name."""
_Turn: TypeAlias = dict[Name, tuple[int, bytes | None]]
_Waiter: TypeAlias = Callable[[Exception | None], object]
"""Called when everything handed over before it is in the file, or with the reason why it is not."""
_Message: TypeAlias = _Turn | _Waiter | None

_log = get_logger("apiserver")


@dataclass(frozen=True, slots=True)
class Stored:
    """One object as it lies in the file."""

    group: str
    plural: str
    namespace: str
    name: str
    revision: int
    body: bytes


class DataFile:
    """An open data file. `note` writes from one thread, the loop's; close it once."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the file, or make it; either way it is closed to other users from then on (mode 0600).

        Raises: ConfigError in one line: no folder, no permission, another program's file, a broken one, one of a newer
            version, one that a running server holds.
        """
        self.path = Path(path)
        self._connection = self._open()
        self._turn: _Turn = {}
        self._queue: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._failure: Exception | None = None
        self._handed = self._taken = 0
        """Turns that were handed to the thread, and those of them that are in the file."""
        self._highest = self.revision
        self._lock = threading.Lock()  # one transaction at a time, whichever thread begins it
        self._thread: threading.Thread | None = None

    # What the last run left

    @property
    def revision(self) -> int:
        """The highest revision of the runs before; 0 in a new file."""
        return int(self.recall("revision") or b"0")

    def objects(self) -> Iterator[Stored]:
        """Yield every stored object. Raises: ConfigError when the file is broken."""
        with self._readable():
            rows = self._connection.execute(
                "SELECT api_group, resource, namespace, name, revision, body FROM objects ORDER BY revision"
            )
            for row in rows:
                yield Stored(*row)

    def recall(self, name: str) -> bytes | None:
        """Return what `remember` kept under this name."""
        with self._readable():
            row = self._connection.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
        return None if row is None else bytes(row[0])

    def remember(self, name: str, value: bytes) -> None:
        """Keep a value that is not an object (a key, a token), at once. Blocks. Raises: ConfigError."""
        with self._lock, self._writable():
            self._connection.execute(_REMEMBER, (name, value))

    # What this run writes

    def note(self, name: Name, revision: int, body: bytes | None) -> None:
        """Keep the new state of an object; None as body: it is gone. After `close` nothing is kept, and `committed` says so."""
        turn = self._turn
        if not turn:
            self._begin_turn()
        turn[name] = (revision, body)

    @property
    def failure(self) -> Exception | None:
        """Why the file could not be written the last time; None when it could."""
        return self._failure

    async def committed(self) -> None:
        """Return when everything noted so far is in the file. Raises: OSError when it cannot be written; it is tried again until `close`."""
        self._hand_over()
        if self._taken == self._handed:
            return
        if self._closing.is_set():  # the thread has ended
            raise OSError(f"cannot write the data file {self.path}: it is closed")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Exception | None] = loop.create_future()

        def tell(failure: Exception | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended: nothing waits any more
                loop.call_soon_threadsafe(_settle, done, failure)

        self._queue.put(tell)
        failure = await done
        if failure is not None:
            raise OSError(f"cannot write the data file {self.path}: {failure}")

    def close(self, revision: int = 0) -> None:
        """Write what is left and close the file; `revision` is the counter's last value.

        Raises: ConfigError when something could not be written.
        """
        if self._closing.is_set():
            return
        self._hand_over()
        self._closing.set()
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
        try:
            if self._failure is not None:
                raise ConfigError(f"the last writes are not in the data file {self.path}: {self._failure}")
            if revision:
                self.remember("revision", str(revision).encode())
        finally:
            self._connection.close()

    def _begin_turn(self) -> None:
        """See to it that the turn of the loop that begins here is handed over as a whole."""
        if self._thread is None and not self._closing.is_set():
            self._thread = threading.Thread(target=self._run, name="ctrlruntime-data", daemon=True)
            self._thread.start()
        try:
            asyncio.get_running_loop().call_soon(self._hand_over)
        except RuntimeError:  # no loop: `close` hands over
            return

    def _hand_over(self) -> None:
        if self._turn:
            turn, self._turn = self._turn, {}
            self._handed += 1
            self._queue.put(turn)

    # The thread

    def _run(self) -> None:
        pending: _Turn = {}
        turns, is_closing = 0, False
        while not is_closing:
            waiting: list[_Waiter] = []
            for message in self._messages(_RETRY if pending else None):
                match message:
                    case None:
                        is_closing = True
                    case dict():
                        pending.update(message)
                        turns += 1
                    case _:
                        waiting.append(message)
            if not pending or self._write(pending):
                self._taken = turns
            for waiter in waiting:
                waiter(self._failure)

    def _messages(self, timeout: float | None) -> Iterator[_Message]:
        """Yield what waits; wait for the first one."""
        try:
            yield self._queue.get(timeout=timeout)
            while True:
                yield self._queue.get_nowait()
        except queue.Empty:
            return

    def _write(self, pending: _Turn) -> bool:
        """Write one transaction and empty `pending`; False when it failed and must be tried again."""
        puts = [(*name, revision, body) for name, (revision, body) in pending.items() if body is not None]
        removals = [name for name, (_, body) in pending.items() if body is None]
        self._highest = max(self._highest, *(revision for revision, _ in pending.values()))
        try:
            with self._lock, self._connection as transaction:
                transaction.executemany(_REMOVE, removals)
                transaction.executemany(_PUT, puts)
                transaction.execute(_REMEMBER, ("revision", str(self._highest).encode()))
        except sqlite3.Error as error:
            if self._failure is None:
                _log.error("cannot write data file, retrying", path=str(self.path), error=str(error))
            self._failure = error
            return False
        if self._failure is not None:
            _log.info("data file is writable again", path=str(self.path))
            self._failure = None
        pending.clear()
        return True

    # Opening

    def _open(self) -> sqlite3.Connection:
        self._check_place()
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(self.path, timeout=_LOCK_WAIT, check_same_thread=False)
            self._prepare(connection)
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, sqlite3.Error):
                raise self._refused(error) from error
            raise
        return connection

    def _check_place(self) -> None:
        folder = self.path.absolute().parent
        if self.path.is_dir():
            raise ConfigError(f"the data file {self.path} is a folder. Use a file in it")
        if not folder.is_dir():
            raise ConfigError(f"the folder of the data file, {folder}, does not exist. Create it, or use another path")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ConfigError(
                f"cannot write to {folder}, the folder of the data file {self.path}. Change its permissions, or use another folder"
            )
        if not self.path.exists():
            # Keys and Secrets will lie in it. SQLite gives its further files the same mode.
            try:
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, _OURS))
            except OSError as error:
                raise ConfigError(f"cannot create the data file {self.path}: {error.strerror}") from error
        elif not os.access(self.path, os.R_OK | os.W_OK):
            raise ConfigError(
                f"cannot read and write the data file {self.path} as this user. Change its owner or its mode"
            )
        else:
            self._close_to_others()

    def _close_to_others(self) -> None:
        """Take from others what an older version, a copy or a careless hand gave them; the further files SQLite left, too."""
        for path in (self.path, *(self.path.with_name(f"{self.path.name}{end}") for end in _FURTHER)):
            try:
                mode = stat.S_IMODE(path.stat().st_mode)
                if mode & ~_OURS:
                    path.chmod(mode & _OURS)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise ConfigError(
                    f"cannot change the mode of the data file {path}: {error.strerror}. Other users can read its keys and Secrets. "
                    f"Change its owner and mode with chown and chmod 600"
                ) from error

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # The lock is taken with the first statement below and kept: a second server finds the file locked.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        application, found = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        is_new = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application != _APPLICATION and not (is_new and not application and not found):
            raise ConfigError(f"the data file {self.path} is a database of another program. Use another file")
        if found > FORMAT:
            raise ConfigError(
                f"the data file {self.path} has format {found}, but this version reads at most {FORMAT}. Upgrade ctrlruntime"
            )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        if is_new:
            connection.executescript(
                f"BEGIN IMMEDIATE; PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {FORMAT}; {_TABLES} COMMIT;"
            )
        else:
            with connection:  # a write takes the lock
                connection.execute("UPDATE state SET value = value WHERE name = 'revision'")
        state = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if state != "ok":
            raise self._broken(state)

    def _refused(self, error: sqlite3.Error) -> ConfigError:
        match getattr(error, "sqlite_errorname", ""):
            case "SQLITE_NOTADB":
                return ConfigError(f"the data file {self.path} is not a SQLite database. Use another file")
            case "SQLITE_BUSY" | "SQLITE_LOCKED":
                return ConfigError(
                    f"the data file {self.path} is in use by another server. Stop that one, or use another file"
                )
            case "SQLITE_CORRUPT" | "SQLITE_ERROR":
                return self._broken(error)
            case _:
                return ConfigError(f"cannot use the data file {self.path}: {error}")

    def _broken(self, why: object) -> ConfigError:
        return ConfigError(f"the data file {self.path} is corrupt: {why}. Restore it, or delete it to start empty")

    @contextlib.contextmanager
    def _readable(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._refused(error) from error

    @contextlib.contextmanager
    def _writable(self) -> Generator[None]:
        try:
            with self._connection:
                yield
        except sqlite3.Error as error:
            raise self._refused(error) from error


def _settle(done: asyncio.Future[Exception | None], failure: Exception | None) -> None:
    if not done.done():  # a client that went away no longer waits
        done.set_result(failure)
