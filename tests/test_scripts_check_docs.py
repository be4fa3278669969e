"""scripts/check-docs: what it runs, what it only compiles, and how it names what fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "check-docs"


def run(tmp_path: Path, *pages: str) -> subprocess.CompletedProcess[str]:
    paths = [tmp_path / f"page{number or ''}.md" for number in range(len(pages))]
    for path, page in zip(paths, pages, strict=True):
        path.write_text(page)
    return subprocess.run([sys.executable, SCRIPT, *paths], capture_output=True, text=True, check=False)


def test_blocks_of_a_page_share_a_namespace_and_are_not_main(tmp_path):
    done = run(tmp_path, "```python\nx = 1\n```\ntext\n```python\nprint(x, __name__)\n```\n")

    assert (done.returncode, done.stdout) == (0, "1 docs\n")


def test_a_block_that_fails_is_named_by_the_line_of_the_page(tmp_path):
    done = run(tmp_path, "# Title\n\n```python\nx = 1\nx.nothing\n```\n")

    assert done.returncode == 1
    assert 'page.md", line 5' in done.stderr


def test_of_several_pages_the_one_that_fails_is_named(tmp_path):
    done = run(tmp_path, "```python\nprint('one')\n```\n", "```python\n1 / 0\n```\n")

    assert done.returncode == 1
    assert "one\n" in done.stdout
    assert "page1.md fails" in done.stdout


def test_a_block_after_the_mark_is_compiled_and_not_run(tmp_path):
    assert run(tmp_path, "<!-- compile only -->\n\n```python\nawait nothing()\n```\n").returncode == 0
    assert run(tmp_path, "<!-- compile only -->\n\n```python\nthis is not a Python\n```\n").returncode == 1


@pytest.fixture
def checkout(tmp_path):
    for name in ("check-docs", "in_environment.py", "side_by_side.py"):
        (tmp_path / "scripts").mkdir(exist_ok=True)
        shutil.copy(SCRIPT.with_name(name), tmp_path / "scripts")
    for folder in ("docs", "tests/docs"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "README.md").touch()
    (tmp_path / "docs" / "page.md").write_text("```python\ndef f():\n    return 1\n```\n")
    return tmp_path


def run_all(checkout: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, checkout / "scripts" / "check-docs"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_file_in_tests_runs_after_its_page_with_the_names_of_the_page(checkout):
    (checkout / "tests/docs/page.py").write_text("print('got', f())\nassert f() == 2\n")

    done = run_all(checkout)

    assert done.returncode == 1
    assert "got 1\n" in done.stdout
    assert "page.md fails" in done.stdout


def test_numbered_pages_of_a_folder_run_once_as_one_document(checkout):
    folder = checkout / "docs" / "tutorial"
    folder.mkdir()
    (folder / "index.md").write_text("```python\nprint('index')\n```\n")
    (folder / "2-b.md").write_text(
        "```python\nprint('x is', x)\n```\n<!-- run -->\n```console\n$ cat note\nhello\n```\n"
    )
    (folder / "1-a.md").write_text("```python\nx = 1\n```\n<!-- run -->\n```console\n$ echo hello > note\n```\n")

    done = run_all(checkout)

    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["index", "x is 1"])


def test_file_in_tests_without_a_page_is_a_failure(checkout):
    (checkout / "tests/docs/other.py").touch()

    done = run_all(checkout)

    assert done.returncode == 1
    assert "tests/docs has files without a page in docs/" in done.stdout


def test_other_languages_are_left_alone(tmp_path):
    assert run(tmp_path, "```console\n$ rm nothing\n```\n").returncode == 0


def test_commands_share_a_shell_and_print_what_is_shown(tmp_path):
    page = "<!-- file: a/b.txt -->\n```yaml\nhello\n```\n<!-- run -->\n```console\n$ cd a\n$ cat b.txt\nhel…\n```\n"

    assert run(tmp_path, page).returncode == 0


def test_a_command_that_fails_is_named_by_its_line(tmp_path):
    done = run(tmp_path, "Text\n\n<!-- run -->\n```console\n$ true\n$ false\n```\n")

    assert done.returncode == 1
    assert "page.md:6: `false` ended with code 1" in done.stdout


def test_output_that_is_shown_and_not_printed_is_a_failure(tmp_path):
    done = run(tmp_path, "<!-- run -->\n```console\n$ printf '1\\n2\\n'\n2\n1\n```\n")

    assert "page.md:3: `printf '1\\n2\\n'` does not print `1`" in done.stdout


def test_what_runs_in_the_background_is_waited_for_and_ended(tmp_path):
    pid = tmp_path / "pid"
    page = f"<!-- run -->\n```console\n$ sh -c 'echo $$ > {pid}; echo here; exec sleep 600' &\nhere\n```\n"

    assert run(tmp_path, page).returncode == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_commands_in_a_checkout_find_the_examples_and_leave_ours_alone(tmp_path):
    done = run(
        tmp_path,
        "<!-- run in a checkout -->\n```console\n$ rm examples/memcached/api.py\n$ ls examples\n…\nmemcached\n```\n",
    )

    assert done.returncode == 0, done.stdout
    assert (SCRIPT.parents[1] / "examples" / "memcached" / "api.py").exists()
