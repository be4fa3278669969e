"""The debug pages: the data of each path, read on the main event loop, and its format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from ctrlruntime.explain import facts, html
from ctrlruntime.explain.explainer import Explainer, QuestionError
from ctrlruntime.serving.debug import Page, Shown

ROOT: Final = "/debug/ctrlruntime/"


def pages(explainer: Explainer) -> dict[str, Page]:
    """Return the debug pages by path."""

    def why(query: Mapping[str, str]) -> facts.Why | facts.Refusal:
        try:
            # The search of the page has one field for namespace/name.
            namespace, _, name = query.get("name", "").strip().rpartition("/")
            namespace = query.get("namespace", "") or namespace
            return explainer.why(
                query.get("kind", "").strip(), namespace, name, query.get("controller", ""), query.get("cluster", "")
            )
        except QuestionError as error:
            return facts.Refusal(error=str(error))

    return {
        ROOT: Page(lambda _: explainer.overview(), _html(html.overview_page), _refused_html),
        f"{ROOT}controllers": Page(lambda _: explainer.controllers(), _json, _refused_json),
        f"{ROOT}queues": Page(lambda _: explainer.queues(), _json, _refused_json),
        f"{ROOT}watches": Page(lambda _: explainer.watches(), _json, _refused_json),
        f"{ROOT}shards": Page(lambda _: explainer.shards(), _json, _refused_json),
        f"{ROOT}fleet": Page(lambda _: explainer.fleet(), _json, _refused_json),
        f"{ROOT}why": Page(why, _json, _refused_json),
        f"{ROOT}object": Page(why, _html(html.why_page), _refused_html),
    }


def _json(seen: object, _: Mapping[str, str]) -> Shown:
    status = 404 if isinstance(seen, facts.Refusal) else 200
    text = msgspec.json.format(msgspec.json.encode(seen), indent=2)
    return Shown(text + b"\n", "application/json", status)


def _html(render: Callable[[Any, Mapping[str, str]], str]) -> Callable[[Any, Mapping[str, str]], Shown]:
    def show(seen: Any, query: Mapping[str, str]) -> Shown:
        if isinstance(seen, facts.Refusal):
            return Shown(html.refusal_page(seen, query).encode(), "text/html", 404)
        return Shown(render(seen, query).encode(), "text/html", 200)

    return show


def _refused_json(error: str, stack: list[str]) -> Shown:
    return Shown(msgspec.json.encode(facts.Refusal(error=error, stack=stack)), "application/json", 503)


def _refused_html(error: str, stack: list[str]) -> Shown:
    return Shown(html.refusal_page(facts.Refusal(error=error, stack=stack)).encode(), "text/html", 503)
