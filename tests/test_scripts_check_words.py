"""scripts/check-words: which texts it reads, what it finds in them, and how it compares that with the baseline."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "scripts").mkdir()
    for name in ("check-words", "in_environment.py"):
        shutil.copy(SCRIPTS / name, tmp_path / "scripts")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


def check_words(checkout, *arguments, **files):
    """Write files ("a__md" is a.md), run the script, and return the process that has ended."""
    for name, text in files.items():
        path = checkout / name.replace("__", ".").replace("_in_", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "add", "--all"], cwd=checkout, check=True)
    return subprocess.run(
        [sys.executable, checkout / "scripts" / "check-words", *arguments], capture_output=True, text=True, check=False
    )


def baseline(checkout, **counts):
    named = {name.replace("__", "."): count for name, count in counts.items()}
    (checkout / "scripts" / "words.json").write_text(json.dumps(named))


LONG = " ".join(["word"] * 31) + "."
PAGE = f"""# Nobody

Text with `nobody` in code, and [a link](nobody.md).

```python
x = "nobody"
```

It is no longer here. It
is no page.

- {LONG}
- {LONG[:-20]}
- {LONG[:-20]}
"""


def test_findings_of_a_page_have_lines_and_advice(checkout):
    done = check_words(checkout, "page.md", page__md=PAGE)

    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "page.md:1: 'Nobody': no client, no subscriber: name the actor",
        "page.md:10: 'is no': is not, has no",
        "page.md:12: a sentence of 31 words: word word word word word word …",
    ]


MODULE = '''"""It stands."""

name = "stands"


def public():
    """It stands."""
    raise ValueError(f"it {name} stands")


def _private():
    """It stands."""
    print("it stands", public)
'''


def test_findings_of_a_module_are_in_messages_and_public_docstrings(checkout):
    done = check_words(checkout, "ctrlruntime/module.py", ctrlruntime_in_module__py=MODULE)

    assert [line.split(":")[1] for line in done.stdout.splitlines()] == ["1", "7", "8", "13"]


@pytest.mark.parametrize(
    ("count", "code", "printed"),
    [
        (1, 1, "page.md has 2 findings, and may have 1\nThey are printed by: scripts/check-words page.md\n"),
        (2, 0, "2 findings in 1 files\n"),
        (3, 1, "fewer findings than in the baseline. Lower it: scripts/check-words --update\n"),
    ],
)
def test_a_file_may_have_the_findings_of_the_baseline(checkout, count, code, printed):
    baseline(checkout, page__md=count)

    done = check_words(checkout, page__md="Nobody stands here.\n")

    assert (done.returncode, done.stdout.endswith(printed)) == (code, True)


def test_update_lowers_the_baseline_and_does_not_raise_it(checkout):
    baseline(checkout, page__md=3, other__md=1)
    assert check_words(checkout, "--update", page__md="Nobody stands here.\n").returncode == 0
    assert json.loads((checkout / "scripts" / "words.json").read_text()) == {"page.md": 2}

    assert check_words(checkout, "--update", page__md="Nobody stands beside it.\n").returncode == 1
