"""mkdocs loads this module as a hook (mkdocs.yml): it adds the generated pages of the reference, and the selector of versions."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
import site_pages


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the Python API and of the cookbook in the navigation. If mike builds the site, it has a list of versions."""
    if "MIKE_DOCS_VERSION" in os.environ:
        config.extra["version"] = {"provider": "mike", "alias": True}
    reference: list[Any] = next(section["Reference"] for section in config.nav or () if "Reference" in section)
    python = next(section["Python API"] for section in reference if "Python API" in section)
    python += [{group.title: group.page} for group in site_pages.groups()]
    cookbook: list[Any] = next(section["Cookbook"] for section in config.nav or () if "Cookbook" in section)
    cookbook += [{recipe.title: recipe.page} for recipe in site_pages.recipes()]
    return config


@event_priority(50)  # before llmstxt, which lists the pages
def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    for group in site_pages.groups():
        files.append(File.generated(config, group.page, content=site_pages.python_page(group)))
    for recipe in site_pages.recipes():
        files.append(File.generated(config, recipe.page, content=site_pages.recipe_page(recipe)))
    for name, page in site_pages.PAGES.items():
        files.append(File.generated(config, name, content=page()))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    return site_pages.linked_index(markdown) if page.file.src_uri == "reference/index.md" else markdown
