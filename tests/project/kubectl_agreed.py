"""Which renderings `kubectl kustomize` was seen to agree with, so that a test need not start it again: it takes most of the test's time.

A rendering is known by a digest of all files of its folder and of what came of them. One that changes on either side is not known, and
kubectl is asked. With `--all` it is always asked. To record those of test_project_kustomize.py anew, which asks kubectl about each:

    python tests/project/kubectl_agreed.py
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

FILE = Path(__file__).with_suffix(".txt")
RECORD = "RECORD_KUBECTL"
"""The variable of the environment with which the digests are appended to the file that it names."""


def digest(folder: Path, result: str) -> str:
    found = hashlib.sha256(result.encode())
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            found.update(f"\n{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return found.hexdigest()


def agreed() -> frozenset[str]:
    return frozenset(FILE.read_text().split())


def note(digest: str) -> None:
    """Record that kubectl agreed, if that is asked for."""
    if name := os.environ.get(RECORD):
        with Path(name).open("a") as file:
            file.write(f"{digest}\n")


def record() -> int:
    import pytest

    new = FILE.with_suffix(".new")
    new.unlink(missing_ok=True)
    os.environ[RECORD] = str(new)
    status = pytest.main(["-q", "-n", "0", "--all", str(Path(__file__).with_name("test_project_kustomize.py"))])
    if status == 0:
        FILE.write_text("".join(sorted(new.read_text().splitlines(keepends=True))))
    new.unlink(missing_ok=True)
    return int(status)


if __name__ == "__main__":
    sys.exit(record())
