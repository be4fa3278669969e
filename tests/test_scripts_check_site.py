"""scripts/check-site: what it finds in a built site."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("site_links", Path(__file__).parents[1] / "scripts" / "site_links.py")
site_links = importlib.util.module_from_spec(spec)
spec.loader.exec_module(site_links)


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        (
            '<a href="../other/">x</a> <a href="/">x</a> <a href="#here" id="here">x</a> <a href="../other/#there">x</a>',
            None,
        ),
        ('<a href="https://example.com/none">x</a> <a href="mailto:a@example.com">x</a> <a>x</a>', None),
        ('<link rel="canonical" href="https://example.com/">', None),
        ('<img src="../other/picture.svg" alt="A picture">', None),
        ('<a href="../none/">x</a>', "the link ../none/ has no target"),
        ('<a href="#none">x</a>', "the link #none has an anchor that does not exist"),
        ('<a href="../other/#none">x</a>', "the link ../other/#none has an anchor that does not exist"),
        ('<img src="none.png" alt="A picture">', "the link none.png has no target"),
        ('<img src="../other/picture.svg">', "the picture ../other/picture.svg has no alternative text"),
        ('<script src="//example.com/x.js"></script>', "loads //example.com/x.js, which"),
        ('<link rel="preconnect" href="https://example.com/">', "loads https://example.com/, which"),
    ],
)
def test_links_pictures_and_other_hosts(html, problem, tmp_path):
    for name, text in (("index.html", ""), ("page/index.html", html), ("other/index.html", '<h1 id="there">x</h1>')):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "other" / "picture.svg").touch()

    found = list(site_links.problems(tmp_path))

    if problem is None:
        assert found == []
    else:
        assert len(found) == 1
        assert found[0].startswith(f"page/index.html: {problem}")


def test_folder_with_other_files_is_not_deleted(tmp_path):
    (tmp_path / "mine.txt").touch()

    script = Path(__file__).parents[1] / "scripts" / "check-site"
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stderr == f"check-site: {tmp_path} has other files, which the build would delete. Give a new folder\n"
    assert (tmp_path / "mine.txt").exists()
