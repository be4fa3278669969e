"""The HTML page: controllers, queues, watches and recent reconciles.

It loads nothing and escapes all text. Its only script loads the page again, unless you type, select text or unfold something.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final
from urllib.parse import urlencode

from ctrlruntime.explain import facts
from ctrlruntime.explain.text import ago, because, in_words, lines
from ctrlruntime.ownership.state import RingState

REFRESH: Final = 5
"""Seconds after which the page reloads."""

_NO_QUERY: Final[Mapping[str, str]] = {}

SCRIPT: Final = f"""
setInterval(() => {{
  const busy = document.querySelector("details[open], input:focus") || String(getSelection());
  if (!busy && document.visibilityState === "visible") location.reload();
}}, {REFRESH * 1000});
"""
"""Loads the page again."""

_LONG: Final = 100
"""Characters of a text that is shown whole."""

_TRIGGERS: Final = 3
"""Triggers of a reconcile that are shown; the others are folded."""

_STYLE: Final = """
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --line: #dfe3e8; --dim: #5f6b7a; --link: #0b57d0;
  --bad: #b3261e; --good: #1b6e3c; --bad-back: #fbe9e7; --good-back: #e6f4ea; }
@media (prefers-color-scheme: dark) { :root { --page: #14171a; --card: #1d2126; --line: #343a41; --dim: #9aa5b1; --link: #8ab4f8;
  --bad: #ff8a80; --good: #81c995; --bad-back: #3a2422; --good-back: #1e3527; } }
body { font: 14px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 84rem; padding: 1rem; background: var(--page); }
h1 { font-size: 1.25rem; margin: 0; } h2 { font-size: 1rem; margin: 0 0 .5rem; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
header, nav, form { display: flex; gap: .4rem 1rem; align-items: baseline; flex-wrap: wrap; } header { margin-bottom: .6rem; }
form { margin-left: auto; gap: .4rem; }
input, button { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: 6px; }
input, button { padding: .2rem .5rem; }
input { width: 11rem; } button { cursor: pointer; }
section, pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .8rem 1rem; margin: .9rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
th { font-weight: 600; font-size: .85em; color: var(--dim); white-space: nowrap; } td.n, th.n { text-align: right; white-space: nowrap; }
td.n + td, th.n + th { padding-left: .6rem; }
code, pre { font: 12.5px/1.5 ui-monospace, monospace; } pre { overflow-x: auto; } code { overflow-wrap: anywhere; }
summary { cursor: pointer; }
.mark { border-radius: 99px; padding: 0 .55em; white-space: nowrap; }
.bad { color: var(--bad); } .good { color: var(--good); } .dim { color: var(--dim); }
.mark.bad { background: var(--bad-back); } .mark.good { background: var(--good-back); }
"""


def overview_page(seen: facts.Overview, query: Mapping[str, str] = _NO_QUERY) -> str:
    """Return the overview page.

    `query` is the query of the request; `refresh=0` turns off the reload.
    """
    kinds = {each.kind for each in seen.controllers} | {each.kind.partition(".")[0] for each in seen.watches}
    return _page(
        "ctrlruntime",
        [
            _section("Controllers", _controllers(seen.controllers)),
            _section("Running now", _running(seen.controllers)),
            _section("Queues", _queues(seen.queues)),
            *([] if seen.ring is None else [_section("Replicas", _replicas(seen.ring))]),
            *([_section("Clusters", _fleet(seen.fleet))] if seen.fleet else []),
            _section("Watches", _watches(seen.watches)),
            *([_section("Write loops", _loops(seen.loops))] if seen.loops else []),
            _section("Latest reconciles", _recent(seen.recent, seen.now)),
        ],
        query,
        kinds=sorted(kinds - {""}),
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


def _page(title: str, parts: Iterable[str], query: Mapping[str, str], *, kinds: Sequence[str] = ()) -> str:
    is_still = query.get("refresh") == "0"
    others = {name: value for name, value in query.items() if name != "refresh"}
    link = urlencode(others if is_still else {**others, "refresh": "0"})
    switch = (
        f'<a href="?{escape(link)}">reload every {REFRESH} s</a>'
        if is_still
        else f'reloads every {REFRESH} s · <a href="?{escape(link)}">stop</a>'
    )
    script = "" if is_still else f"<script>{SCRIPT}</script>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f'<header><h1>{escape(title)}</h1><span class="dim">{switch}</span>{_search(others, kinds)}</header>'
        '<nav><a href="./">all</a><span class="dim">as JSON:</span><a href="controllers">controllers</a>'
        '<a href="queues">queues</a><a href="watches">watches</a><a href="shards">shards</a><a href="fleet">fleet</a></nav>'
        f"<main>{''.join(parts)}</main>{script}</body></html>"
    )


def _search(query: Mapping[str, str], kinds: Sequence[str]) -> str:
    """Return the form that leads to the page of an object."""
    kind = escape(query.get("kind", ""))
    options = "".join(f'<option value="{escape(each)}"></option>' for each in kinds)
    return (
        '<form action="object" role="search">'
        f'<input name="kind" aria-label="kind" placeholder="kind" list="kinds" required value="{kind}">'
        f'<datalist id="kinds">{options}</datalist>'
        '<input name="name" aria-label="name" placeholder="namespace/name" required>'
        "<button>why?</button></form>"
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
            _size(each.size_bytes),
            str(each.watches),
            str(each.lists),
            f'<span class="bad">{escape(each.trouble)}</span>',
        )
        for each in watches
    ]
    heads = ("kind", "scope", "state", "last activity#", "objects#", "size#", "watches#", "lists#", "trouble")
    return _table(heads, rows, "none")


def _replicas(ring: RingState) -> str:
    rows = [
        (
            escape(each.pod or each.member) + (" (this one)" if each.is_here else ""),
            escape(each.state) if each.state == "serving" else _mark(each.state, is_good=False),
            f"{each.slots} of {ring.slots}",
            str(each.coming),
            "yes" if each.leads else "",
            str(each.weight),
            escape(each.layout) if each.layout == ring.layout else _mark(each.layout or "unknown", is_good=False),
            ago(each.seconds),
        )
        for each in ring.replicas
    ]
    heads = ("replica", "state", "slots#", "coming#", "leads", "weight#", "layout", "last renewal seen#")
    problems = [f"{ring.unowned} slots without an owner"] if ring.unowned else []
    problems += [ring.trouble] if ring.trouble else []
    return _table(heads, rows, "none") + "".join(f'<p class="bad">{escape(each)}</p>' for each in problems)


def _fleet(clusters: Sequence[facts.FleetCluster]) -> str:
    rows = [
        (
            escape(each.name),
            _mark(each.state, is_good=each.state not in {"Connecting", "Degraded"}),
            escape(each.owner),
            *(("", "") if each.state == "Foreign" else (ago(each.seconds), f"{ago(each.silence)} ago")),
            str(each.waiting),
            escape(", ".join(f"{key}={value}" for key, value in each.labels.items())),
            f'<span class="bad">{escape(each.reason)}</span>',
        )
        for each in clusters
    ]
    return _table(
        ("cluster", "state", "replica", "for#", "last response#", "waiting requests#", "labels", "trouble"),
        rows,
        "none",
    )


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
    return _mark(recent.outcome, is_good=not recent.error) + _folded(recent.error or recent.reason)


def _folded(text: str) -> str:
    """Return text as code on lines of its own; the rest of a long one is folded."""
    first = text.partition("\n")[0][:_LONG]
    if not text or first == text:
        return f"<br><code>{escape(text)}</code>" if text else ""
    return f"<details><summary><code>{escape(first)}…</code></summary><code>{escape(text)}</code></details>"


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"


def _request(kind: str, request: str, controller: str) -> str:
    namespace, _, name = request.rpartition("/")
    return object_link(kind or controller, namespace, name, controller, request)


def _triggers(triggers: Sequence[facts.Trigger], omitted: int, attempts: int) -> str:
    texts = [
        *(because(trigger) for trigger in triggers),
        *([f"and {omitted} more"] if omitted else []),
        *([f"again, after {attempts} failures"] if attempts else []),
    ]
    if not texts:
        return '<span class="dim">requeue_after, or no reason given</span>'
    first, rest = texts[:_TRIGGERS], texts[_TRIGGERS:]
    shown = "<br>".join(escape(text) for text in first)
    if not rest:
        return shown
    return f"{shown}<details><summary>{len(rest)} more</summary>{'<br>'.join(escape(text) for text in rest)}</details>"


def _mark(text: str, *, is_good: bool) -> str:
    return f'<span class="mark {"good" if is_good else "bad"}">{escape(text)}</span>'
