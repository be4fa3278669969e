"""URLs without secrets: without a user, a password or a query."""

from __future__ import annotations

import re

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_NO_PORT = re.compile(r":(?![0-9]{0,5}(?:/|$))[^:/\]]*(?=/|$)")
_LONGEST = 200


def shown_url(url: object) -> str:
    """Return a URL without secrets.

    Everything before the last `@` is removed, because an unescaped password may have any character. The query, the fragment and a port that
    is not a number are removed too. It never fails, because the text may not be a URL at all.
    """
    text = str(url).strip()
    scheme = found[0] if (found := _SCHEME.match(text)) else ""
    _, at, rest = text[len(scheme) :].rpartition("@")
    rest, mark = re.split(r"[?#]", rest, maxsplit=1)[0], re.search(r"[?#]", rest)
    rest = _NO_PORT.sub(":…", rest) if not rest.startswith("[") or "]:" in rest else rest
    shown = f"{scheme}{'…@' if at else ''}{rest}{f'{mark[0]}…' if mark else ''}"
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
