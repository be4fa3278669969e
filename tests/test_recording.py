"""The recorded session that the documentation plays."""

from __future__ import annotations

import json
import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
RECORDING = DOCS / "recordings/session.cast"


def test_text_of_page_is_that_of_recording():
    header, *events = (json.loads(line) for line in RECORDING.read_text(encoding="utf-8").splitlines())
    printed = "".join(text for _, kind, text in events if kind == "o")
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", printed).replace("\r", "").splitlines()
    page = (DOCS / "learn/terminal-session.md").read_text(encoding="utf-8")

    assert header["version"] == 2
    assert [line.rstrip() for line in lines] == page.partition("```text\n")[2].partition("\n```")[0].splitlines()
    assert [line for line in lines if re.match(r"(error|usage)\b|traceback", line, re.IGNORECASE)] == []
