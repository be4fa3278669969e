"""What is wrong with the links and pictures of a built site."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from typing_extensions import override

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
RECORDING = re.compile(r'AsciinemaPlayer\.create\("([^"]+)"')
NOT_LOADED = {"canonical", "next", "prev", "alternate"}  # `rel` of a <link> that the browser does not follow


class Page(HTMLParser):
    """The parts of a page that are checked."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids = {"", "__top"}
        self.links: list[str] = []
        """Addresses of links and of what the page loads."""
        self.outside: list[str] = []
        """Addresses of other hosts that the page loads."""
        self.undescribed: list[str] = []
        """Pictures without alternative text."""
        self.feed(text)
        self.links += RECORDING.findall(text)

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a":
            self.links.append(given.get("href", ""))
        elif (address := given.get(LOADED.get(tag, ""))) and not set(given.get("rel", "").split()) & NOT_LOADED:
            is_outside = bool(urlsplit(address).netloc)
            (self.outside if is_outside else self.links).append(address)
        if tag == "img" and not given.get("alt"):
            self.undescribed.append(given.get("src", ""))


def problems(folder: Path) -> Iterator[str]:
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(folder)
        yield from (
            f"{name}: loads {address}, which a reader without network does not have" for address in page.outside
        )
        yield from (f"{name}: the picture {address} has no alternative text" for address in page.undescribed)
        for address in page.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            start = folder if parts.path.startswith("/") else path.parent
            target = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                yield f"{name}: the link {address} has no target"
            elif target in pages and unquote(parts.fragment) not in pages[target].ids:
                yield f"{name}: the link {address} has an anchor that does not exist"
