"""The plugin llmstxt calls `preprocess` (mkdocs.yml) before it writes a page as Markdown."""

from __future__ import annotations

import re
from pathlib import Path

import site_pages
from bs4 import BeautifulSoup
from mkdocs_llmstxt import autoclean

_ROOT = Path(__file__).resolve().parent.parent
_SITE = re.findall(r"^site_url: (\S+)", (_ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)[0]


def preprocess(soup: BeautifulSoup, output: str) -> None:  # noqa: ARG001 - the plugin's signature
    """Make links to the Python API real links; the site has them only after the last page is built."""
    pages = {
        f"{group.python}.{name}": group.page.removesuffix(".md")
        for group in site_pages.groups()
        for name in group.names
    }
    for reference in soup.find_all("autoref"):
        name = str(reference.get("identifier"))
        while name and name not in pages:
            name = name.rpartition(".")[0]  # a method is on the page of its class
        if name:
            reference.name = "a"
            reference.attrs = {"href": f"{_SITE}{pages[name]}/index.md"}
    for player in soup.find_all("div", class_="mkap-window-night"):
        player.decompose()
    autoclean(soup)
