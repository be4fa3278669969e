"""The reference of the site: each error, log event, metric, flag and setting has exactly one entry."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import ctrlruntime as ctrl
from ctrlruntime import errors

ROOT = Path(__file__).parents[1]


def public_errors() -> set[str]:
    modules = [getattr(ctrl, name) for name in sorted(ctrl._SUBMODULES - {"api"})]
    named = {name: getattr(module, name) for module in modules for name in module.__all__}
    return {name for name, value in named.items() if isinstance(value, type) and issubclass(value, errors.CtrlError)}


def test_every_public_error_has_one_entry_with_its_anchor():
    text = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### (\w+) \{#(\w+)\}$", text, re.MULTILINE)

    assert [name for name, anchor in headings if name != anchor] == []
    assert sorted(name for name, _ in headings) == sorted(public_errors())


def test_doc_url_knows_every_public_error():
    assert public_errors() == errors._DOCUMENTED


def test_doc_url_of_an_error_without_an_entry_leads_to_its_base_class():
    class LocalError(errors.NoMatchError):
        pass

    assert LocalError("").doc_url == "https://ctrlruntime.dev/reference/errors/#NoMatchError"


def test_site_has_the_address_of_doc_url():
    assert "site_url: https://ctrlruntime.dev/\n" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_every_public_name_has_an_example(site_pages):
    shown = site_pages.site_examples.places(ROOT / "docs")
    names = [(group.python, name) for group in site_pages.groups() for name in group.names]

    assert [f"{module}.{name}" for module, name in names if not {f"{module}.{name}", name} & shown.keys()] == []


def test_names_are_found_through_the_imports_of_earlier_blocks(site_pages, tmp_path):
    (tmp_path / "how-to").mkdir()
    (tmp_path / "how-to/caches.md").write_text(
        "# Caches\n\n```python\nimport ctrlruntime as ctrl\nfrom ctrlruntime.crd import Format as F\n```\n\n"
        "## `Read` objects, twice\n\n```python\nctrl.cache.Cache(F)\n```\n\n"
        "## `Read` objects, twice\n\n```python\nctrl.run(mgr)\n```\n\n```text\nctrl.Client\n```\n"
    )

    shown = site_pages.site_examples.places(tmp_path)

    assert {name: [place.anchor for place in places] for name, places in shown.items()} == {
        "ctrlruntime": ["read-objects-twice", "read-objects-twice_1"],
        "ctrlruntime.cache": ["read-objects-twice"],
        "ctrlruntime.cache.Cache": ["read-objects-twice"],
        "ctrlruntime.crd.Format": ["read-objects-twice"],
        "ctrlruntime.run": ["read-objects-twice_1"],
    }
    assert (
        shown["ctrlruntime.run"][0].link == "[Caches: Read objects, twice](../../how-to/caches.md#read-objects-twice_1)"
    )


def test_log_events_are_literals_of_at_most_sixty_characters(site_pages):
    events = site_pages.log_events()

    assert len(events) > 100
    assert [each.event for each in events if len(each.event) > 60] == []
    assert ("controller", "reconcile failed, retrying with backoff") in {(each.logger, each.event) for each in events}


def test_every_recorded_event_reason_has_an_entry(site_pages):
    assert site_pages.recorded_reasons() == set(site_pages.EVENT_REASONS)


def test_metrics_page_has_the_metrics_of_manager_and_webhook_server(site_pages):
    names = re.findall(r"^\| `(\w+)` \|", site_pages.metrics_page(), re.MULTILINE)

    assert len(names) == len(set(names))
    assert {"controller_runtime_reconcile_total", "controller_runtime_webhook_requests_total"} <= set(names)


def test_generated_pages_have_a_title_and_no_empty_table(site_pages):
    for name, page in site_pages.PAGES.items():
        text = page()
        assert text.startswith("# "), name
        assert re.search(r"^\| --- .*\n\| ", text, re.MULTILINE), name


def test_a_log_call_whose_event_is_no_literal_is_an_error(site_pages, tmp_path, monkeypatch):
    module = tmp_path / "module.py"
    module.write_text('_log = get_logger("x")\ndef f():\n    _log.info(f"{1}")\n')
    monkeypatch.setattr(site_pages, "ROOT", tmp_path)

    with pytest.raises(ValueError, match=r"module\.py:3: the event of a log call is not a literal"):
        list(site_pages._log_calls(module))


def test_event_of_a_function_that_adds_keys_is_that_of_its_callers(site_pages, tmp_path, monkeypatch):
    module = tmp_path / "module.py"
    module.write_text(
        "class C:\n"
        '    def __init__(self):\n        self._log = get_logger("x")\n'
        "    def _failed(self, event, **fields):\n        self._log.error(event, kind=1, **fields)\n"
        '    def f(self):\n        self._failed("it failed", path=2)\n'
    )
    monkeypatch.setattr(site_pages, "ROOT", tmp_path)

    assert list(site_pages._log_calls(module)) == [("x", "error", "it failed", ["kind", "path"])]


def test_architecture_page_lists_the_layers_that_are_checked():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(each for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == "layers")
    page = (ROOT / "docs" / "concepts" / "architecture.md").read_text(encoding="utf-8")
    block = page.partition("```text\n")[2].partition("```")[0]

    shown = [re.split(r" {3,}", line)[0].split() for line in block.splitlines()]

    assert shown == [re.findall(r"\w+", layer) for layer in contract["layers"]]
