"""scripts/check-docs: what it runs, what it only compiles, and how it names what fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "scripts" / "check-docs"


def run(tmp_path: Path, page: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "page.md"
    path.write_text(page)
    return subprocess.run([sys.executable, SCRIPT, path], capture_output=True, text=True, check=False)


def test_blocks_of_a_page_share_a_namespace_and_are_not_main(tmp_path):
    done = run(tmp_path, "```python\nx = 1\n```\ntext\n```python\nprint(x, __name__)\n```\n")

    assert (done.returncode, done.stdout) == (0, "1 docs\n")


def test_a_block_that_fails_is_named_by_the_line_of_the_page(tmp_path):
    done = run(tmp_path, "# Title\n\n```python\nx = 1\nx.nothing\n```\n")

    assert done.returncode == 1
    assert 'page.md", line 5' in done.stderr


def test_a_block_after_the_mark_is_compiled_and_not_run(tmp_path):
    assert run(tmp_path, "<!-- compile only -->\n\n```python\nawait nothing()\n```\n").returncode == 0
    assert run(tmp_path, "<!-- compile only -->\n\n```python\nthis is no Python\n```\n").returncode == 1


def test_other_languages_are_left_alone(tmp_path):
    assert run(tmp_path, "```console\n$ rm nothing\n```\n").returncode == 0
