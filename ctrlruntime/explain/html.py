"""The HTML page: controllers, queues, watches and recent reconciles.

It loads nothing, runs no script, and escapes all text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final
from urllib.parse import urlencode

from ctrlruntime.explain import facts
from ctrlruntime.explain.text import ago, because, in_words, lines

REFRESH: Final = 5
"""Seconds after which the page reloads."""

_NO_QUERY: Final[Mapping[str, str]] = {}

_STYLE: Final = """
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent); --bad: #c62828; --good: #2e7d32; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --good: #81c784; } }
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 80rem; padding: 0 1rem; }
h1 { font-size: 1.3rem; margin: 0; } h2 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
header { display: flex; gap: 1rem; align-items: baseline; flex-wrap: wrap; }
nav a, header a { margin-right: .8rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; white-space: nowrap; } td.n, th.n { text-align: right; white-space: nowrap; }
td.n + td, th.n + th { padding-left: .6rem; }
code, pre { font: 12.5px/1.5 ui-monospace, monospace; } pre { overflow-x: auto; }
.bad { color: var(--bad); } .good { color: var(--good); } .dim { opacity: .65; }
"""


def overview_page(seen: facts.Overview, query: Mapping[str, str] = _NO_QUERY) -> str:
    """Return the overview page.

    `query` is the query of the request; `refresh=0` turns off the reload.
    """
    return _page(
        "ctrlruntime",
        [
            _section("Controllers", _controllers(seen.controllers)),
            _section("Running now", _running(seen.controllers)),
            _section("Queues", _queues(seen.queues)),
            _section("Watches", _watches(seen.watches)),
            *([_section("Write loops", _loops(seen.loops))] if seen.loops else []),
            _section("Latest reconciles", _recent(seen.recent, seen.now)),
        ],
        query,
    )


def why_page(why: facts.Why, query: Mapping[str, str] = _NO_QUERY) -> str:
    """Return the page of one object."""
    key = f"{why.namespace}/{why.name}" if why.namespace else why.name
    return _page(f"{why.kind} {key}", [f"<pre>{escape(chr(10).join(lines(why)))}</pre>"], query)


def refusal_page(refusal: facts.Refusal, query: Mapping[str, str] = _NO_QUERY) -> str:
    """Return the page for an invalid query, or one that cannot be answered now."""
    stack = f"<pre>{escape(chr(10).join(refusal.stack))}</pre>" if refusal.stack else ""
    return _page("no answer", [f'<p class="bad">{escape(refusal.error)}</p>', stack], query)


def object_link(kind: str, namespace: str, name: str, controller: str, text: str) -> str:
    query = urlencode({"kind": kind, "namespace": namespace, "name": name, "controller": controller})
    return f'<a href="object?{escape(query)}">{escape(text)}</a>'


def _page(title: str, parts: Iterable[str], query: Mapping[str, str]) -> str:
    stands_still = query.get("refresh") == "0"
    meta = "" if stands_still else f'<meta http-equiv="refresh" content="{REFRESH}">'
    others = {name: value for name, value in query.items() if name != "refresh"}
    link = urlencode(others if stands_still else {**others, "refresh": "0"})
    switch = (
        f'<a href="?{escape(link)}">load again every {REFRESH} s</a>'
        if stands_still
        else f'loads itself again every {REFRESH} s · <a href="?{escape(link)}">stop</a>'
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{meta}<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f'<header><h1>{escape(title)}</h1><span class="dim">{switch}</span></header>'
        '<nav><a href="./">all</a><a href="controllers">controllers</a><a href="queues">queues</a>'
        '<a href="watches">watches</a><span class="dim">(the last three as JSON)</span></nav>'
        f"<main>{''.join(parts)}</main></body></html>"
    )


def _section(title: str, content: str) -> str:
    return f'<section id="{title.lower().replace(" ", "-")}"><h2>{escape(title)}</h2>{content}</section>'


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> str:
    """Return a table of cells that are HTML; a head that ends with # is of a column of numbers."""
    if not rows:
        return f'<p class="dim">{escape(empty)}</p>'
    marks = [' class="n"' if head.endswith("#") else "" for head in heads]
    top = "".join(f"<th{mark}>{escape(head.rstrip('#'))}</th>" for head, mark in zip(heads, marks, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{mark}>{cell}</td>" for cell, mark in zip(row, marks, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _controllers(controllers: Sequence[facts.Controller]) -> str:
    rows = [
        (
            escape(each.name),
            escape(f"{each.kind}.{each.group}" if each.group else each.kind),
            _mark("started", is_good=True) if each.is_started else _mark("not started", is_good=False),
            f"{len(each.running)} of {each.workers}",
            "<br>".join(_source(source) for source in each.sources),
        )
        for each in controllers
    ]
    return _table(("name", "kind", "state", "workers busy#", "sources"), rows, "none")


def _source(source: facts.Source) -> str:
    return escape(source.name) + ("" if source.is_synced else " " + _mark("not synced", is_good=False))


def _running(controllers: Sequence[facts.Controller]) -> str:
    rows = [
        (
            escape(each.name),
            _request(each.kind, run.request, each.name),
            ago(run.seconds),
            f"<code>{escape(run.stands_at)}</code>",
            _triggers(run.triggers, run.omitted, run.attempts),
        )
        for each in controllers
        for run in each.running
    ]
    return _table(("controller", "request", "for#", "waits at", "triggers"), rows, "nothing")


def _queues(queues: Sequence[facts.Queue]) -> str:
    rows = [
        (
            escape(each.controller),
            str(each.ready),
            str(each.waiting),
            str(each.in_work),
            "" if each.oldest_ready is None else ago(each.oldest_ready),
            escape(", ".join(f"{priority}: {count}" for priority, count in each.by_priority.items())),
            "<br>".join(_queued(key) for key in each.keys[:5]),
        )
        for each in queues
    ]
    heads = ("controller", "ready#", "waiting#", "in work#", "oldest ready#", "ready by priority", "first keys")
    return _table(heads, rows, "none")


def _queued(key: facts.Queued) -> str:
    times = f", due in {ago(key.seconds)}" if key.state == "waiting" else f" for {ago(key.seconds)}"
    failures = f", {key.attempts} failures" if key.attempts else ""
    return escape(f"{key.request}: {key.state}{times}{failures}")


def _watches(watches: Sequence[facts.Watch]) -> str:
    rows = [
        (
            escape(f"{each.cluster}:{each.kind}" if each.cluster else each.kind),
            escape(each.scope or "all"),
            escape(each.state) if each.is_synced else _mark(f"{each.state}, not synced", is_good=False),
            _mark("never", is_good=False) if each.alive is None else f"{ago(each.alive)} ago",
            str(each.objects),
            f"{each.size_bytes / 1024:.0f} KiB",
            str(each.watches),
            str(each.lists),
            f'<span class="bad">{escape(each.trouble)}</span>',
        )
        for each in watches
    ]
    heads = ("kind", "scope", "state", "last activity#", "objects#", "bytes#", "watches#", "lists#", "trouble")
    return _table(heads, rows, "none")


def _loops(loops: Sequence[facts.Loop]) -> str:
    rows = [(escape(each.controller), _mark(in_words(each), is_good=False)) for each in loops]
    return _table(("controller", "loop"), rows, "none")


def _recent(recent: Sequence[facts.Recent], now: float) -> str:
    rows = [
        (
            f"{ago(now - each.started)} ago",
            escape(each.controller),
            object_link(each.kind or each.controller, each.namespace, each.name, each.controller, each.request),
            _outcome(each),
            f"{each.seconds * 1000:.1f} ms",
            _triggers(each.triggers, each.omitted, each.attempts),
        )
        for each in recent
    ]
    return _table(("when#", "controller", "request", "outcome", "took#", "triggers"), rows, "none yet")


def _outcome(recent: facts.Recent) -> str:
    text = f"<br><code>{escape(recent.error or recent.reason)}</code>" if recent.error or recent.reason else ""
    return _mark(recent.outcome, is_good=not recent.error) + text


def _request(kind: str, request: str, controller: str) -> str:
    namespace, _, name = request.rpartition("/")
    return object_link(kind or controller, namespace, name, controller, request)


def _triggers(triggers: Sequence[facts.Trigger], omitted: int, attempts: int) -> str:
    texts = [
        *(because(trigger) for trigger in triggers),
        *([f"and {omitted} more"] if omitted else []),
        *([f"again, after {attempts} failures"] if attempts else []),
    ]
    return "<br>".join(escape(text) for text in texts) or '<span class="dim">requeue_after, or no reason given</span>'


def _mark(text: str, *, is_good: bool) -> str:
    return f'<span class="{"good" if is_good else "bad"}">{escape(text)}</span>'
