"""The generated pages of the reference, as Markdown: each is made from the code that it documents."""

from __future__ import annotations

import argparse
import ast
import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import site_examples
from prometheus_client.core import Metric

from ctrlruntime.apiserver.command import parser as server_parser
from ctrlruntime.manager.flags import add_flags
from ctrlruntime.metrics import Metrics
from ctrlruntime.metrics.collector import Collector
from ctrlruntime.project.settings import Features, Resource, Settings
from ctrlruntime.webhook.metrics import make_collector
from examples.cookbook import RECIPES

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "ctrlruntime"
COOKBOOK = ROOT / "examples" / "cookbook"
INDEX = ROOT / "docs/reference/index.md"

MOST_EXAMPLES = 3  # for one name
LOG_LEVELS = ("debug", "info", "warning", "error")


class Group(NamedTuple):
    """One row of the tables in reference/index.md: a page of the Python API."""

    title: str
    page: str
    module: str
    """`ctrl.cache`; `ctrl` for the names of the package itself."""

    names: list[str]

    @property
    def python(self) -> str:
        return f"ctrlruntime{self.module.removeprefix('ctrl')}"


def groups() -> Iterator[Group]:
    """Yield the pages of the Python API, in the order of the tables."""
    for line in INDEX.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `ctrl.") and len(cells) == 3:
            module = cells[0].strip("`")
            yield Group(module, f"reference/python/{module}.md", module, _names(cells[2]))
        elif line.startswith("| ") and len(cells) == 2 and "`" in cells[1] and "`" not in cells[0]:
            page = f"reference/python/{cells[0].replace(' ', '-')}.md"
            yield Group(f"ctrl: {cells[0]}", page, "ctrl", _names(cells[1]))


def _names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


_RETURNED = {
    "new_controller_managed_by": ["ctrlruntime.builder.controller.Builder"],
    "new_webhook_managed_by": ["ctrlruntime.builder.webhook.WebhookBuilder", "ctrlruntime.builder.webhook.RuleOptions"],
}
"""Classes that users get from a function, and whose methods they call without naming the class."""


def python_page(group: Group) -> str:
    names = [name for each in group.names for name in (f"{group.python}.{each}", *_RETURNED.get(each, ()))]
    return "\n\n".join([f"# {group.title}", *(f"::: {name}" for name in names), "## Examples", _examples(group)])


@functools.cache
def _shown() -> dict[str, list[site_examples.Place]]:
    return site_examples.places(ROOT / "docs")


def _examples(group: Group) -> str:
    """Return a table of the sections that show each name in code that runs."""
    shown = _shown()
    rows = []
    for name in sorted(group.names, key=str.lower):
        listed = [*shown.get(f"{group.python}.{name}", ()), *shown.get(name, ())]
        rows.append((f"`{name}`", " · ".join(place.link for place in listed[:MOST_EXAMPLES])))
    return _table(("name", "shown in"), rows)


def linked_index(markdown: str) -> str:
    """Return reference/index.md with a link for each name of its tables."""
    homes = {(group.module, name): f"{group.python}.{name}" for group in groups() for name in group.names}
    lines: list[str] = []
    for line in markdown.splitlines():
        module = re.match(r"\| `(ctrl\.\w+)` \|", line)
        prefix = module[1] if module else "ctrl"

        def link(name: re.Match[str], prefix: str = prefix) -> str:
            home = homes.get((prefix, name[1]))
            return f"[`{name[1]}`][{home}]" if home else name[0]

        lines.append(re.sub(r"`(\w+)`", link, line) if line.startswith("| ") else line)
    return "\n".join(lines)


def metrics_page() -> str:
    families = list(metric_families())
    rows = [
        (
            f"`{family.name}{'_total' if family.type == 'counter' else ''}`",
            family.type,
            ", ".join(f"`{label}`" for label in getattr(family, "_labelnames", ())),
            family.documentation,
        )
        for family in families
    ]
    return f"""# Metrics

An operator serves these metrics at `/metrics`. [Serve metrics](../how-to/metrics.md) shows how to turn the server on and how to
add metrics of your own, and [Secure metrics](../how-to/secure-metrics.md) how to protect it. Names of controller-runtime have the
same meaning here.

{_table(("metric", "type", "labels", "meaning"), rows)}

A histogram has the samples `_bucket` (with the label `le`), `_sum` and `_count`. The Prometheus client for Python adds `process_…`,
`python_info` and `python_gc_…`. The handler `ctrlruntime.operatorlib.InstrumentedEnqueueRequestForObject` adds
`resource_created_at_seconds` for each object.
"""


class _NoTotals:
    def paths(self) -> list[Any]:
        return []

    def panics(self) -> dict[str, int]:
        return {}

    def certificate_reads(self) -> tuple[int, int]:
        return 0, 0


def metric_families() -> Iterator[Metric]:
    """Yield the metrics of a manager and of its webhook server, without samples."""
    yield from Collector(Metrics()).collect()
    yield from make_collector(_NoTotals()).collect()


class LogEvent(NamedTuple):
    logger: str
    event: str
    levels: tuple[str, ...]
    keys: tuple[str, ...]


def log_events() -> list[LogEvent]:
    """Return the events that the package logs, except those of the embedded API server and the demos.

    Raises: ValueError for a log call whose event is not a literal.
    """
    found: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if not {"apiserver", "testing"} & set(path.relative_to(PACKAGE).parts):
            for logger, level, event, keys in _log_calls(path):
                levels, all_keys = found.setdefault((logger, event), (set(), set()))
                levels.add(level)
                all_keys.update(keys)
    return [
        LogEvent(logger, event, tuple(level for level in LOG_LEVELS if level in levels), tuple(sorted(keys)))
        for (logger, event), (levels, keys) in sorted(found.items())
    ]


def _log_calls(path: Path) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield (logger, level, event, keys) of each log call of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    name_of = _loggers(tree, path.parent.name)
    calls = list(_calls(tree, None))
    for function, call, method in calls:
        level = "error" if method.attr == "exception" else method.attr
        receiver = ast.unparse(method.value)
        if level not in LOG_LEVELS or not (receiver in name_of or "get_logger(" in receiver) or not call.args:
            continue
        logger = name_of.get(receiver) or _logger_name(method.value)
        where = f"{path.relative_to(ROOT)}:{call.lineno}"
        event = call.args[0]
        parameters = [each.arg for each in function.args.args] if function else []
        if function and isinstance(event, ast.Name) and event.id in parameters:
            # The function adds keys to an event of its callers.
            position = parameters.index(event.id) - (parameters[0] == "self")
            for _, outer, name in calls:
                if name.attr == function.name:
                    for text in _literals(outer.args[position], where):
                        yield logger, level, text, _keys(call) + _keys(outer)
        else:
            for text in _literals(event, where):
                yield logger, level, text, _keys(call)


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _calls(node: ast.AST, function: _Function | None) -> Iterator[tuple[_Function | None, ast.Call, ast.Attribute]]:
    """Yield each call of a method below a node, with the innermost function that has it."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield function, node, node.func
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, child if isinstance(child, _Function) else function)


def _loggers(tree: ast.Module, package: str) -> dict[str, str]:
    """Return the names of the loggers by the variables that have them."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            name = ast.unparse(node.targets[0])
            if "get_logger(" in ast.unparse(node.value):
                found[name] = _logger_name(node.value)
            elif name == "self._log" and isinstance(node.value, ast.Name):  # a parameter: the logger of the package
                found[name] = package
    return found


def _logger_name(node: ast.expr) -> str:
    match = re.search(r"get_logger\('(\w+)'\)", ast.unparse(node))
    if match is None:
        raise ValueError(f"{ast.unparse(node)}: give the logger a literal name")
    return match[1]


def _literals(node: ast.expr, where: str) -> list[str]:
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.IfExp(body=body, orelse=other):
            return [*_literals(body, where), *_literals(other, where)]
        case _:
            raise ValueError(f"{where}: the event of a log call is not a literal: {ast.unparse(node)}")


def _keys(call: ast.Call) -> list[str]:
    return [keyword.arg for keyword in call.keywords if keyword.arg and keyword.arg != "exc_info"]


def log_events_page() -> str:
    lines = [
        "# Log events",
        "",
        "Each line of the log has the time, the level, the logger, the event and keys. These are the events of an operator.",
        "Lines of a reconcile also have its controller, object and `reconcileID`.",
        "[Configure logs](../how-to/logs.md) shows how to choose level and format.",
        "Events of [`ctrl.get_logger`][ctrlruntime.get_logger] in your code have the names that you give them.",
    ]
    events = log_events()
    for logger in sorted({each.logger for each in events}):
        rows = [
            (each.event, " or ".join(each.levels), ", ".join(f"`{key}`" for key in each.keys))
            for each in events
            if each.logger == logger
        ]
        lines += ["", f"## {logger}", "", _table(("event", "level", "keys"), rows)]
    return "\n".join([*lines, ""])


EVENT_REASONS = {
    "DecodeFailed": (
        "Warning",
        "Decode",
        "The class of the kind cannot decode the object, so it is not reconciled. The message names the fields.",
    ),
    "LeaderElection": (
        "Normal",
        "StartLeading, StopLeading",
        "The process acquired or lost the Lease. The Event is for the Lease.",
    ),
}


def recorded_reasons() -> set[str]:
    """Return the reasons of the Events that the package records, from its calls of `EventRecorder.event`."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        if not {"apiserver", "testing"} & set(path.relative_to(PACKAGE).parts):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "event":
                    found.update(ast.literal_eval(each.value) for each in node.keywords if each.arg == "reason")
    return found


def event_reasons_page() -> str:
    rows = [(f"`{reason}`", *rest) for reason, rest in EVENT_REASONS.items()]
    return f"""# Event reasons

The library records these Kubernetes Events. `kubectl describe` and `kubectl get events` show them. Events that your reconciler records with
[`ctrl.EventRecorder`][ctrlruntime.EventRecorder] have the reasons that you choose.

{_table(("reason", "type", "action", "meaning"), rows)}
"""


def flags_page() -> str:
    parser = argparse.ArgumentParser(add_help=False)
    add_flags(parser)
    return f"""# Flags of an operator

[`ctrl.parse_flags`][ctrlruntime.parse_flags] reads these flags. [`ctrl.add_flags`][ctrlruntime.add_flags] adds them to a parser of your own.
The names are those of controller-runtime.

{_flags(parser)}

| environment variable | effect |
|---|---|
| `KUBECONFIG` | kubeconfig files, separated by colons |
| `WATCH_NAMESPACE` | comma-separated namespaces that the cache watches, unless `CacheOptions.namespaces` is set |
"""


def server_page() -> str:
    return f"""# Options of the embedded API server

`python -m ctrlruntime.apiserver --kubeconfig PATH` starts the server until SIGTERM or Ctrl-C.
[The embedded API server](../concepts/embedded-server.md) explains its scope.

{_flags(server_parser())}
"""


def _flags(parser: argparse.ArgumentParser) -> str:
    rows = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no other
        if action.option_strings and action.dest != "help":
            value = action.metavar or ("|".join(action.choices) if action.choices else "")
            names = " ".join(
                f"`{name}{f' {value}' if value and action.nargs != 0 else ''}`" for name in action.option_strings
            )
            rows.append((names, _sentence(action.help or "")))
    return _table(("flag", "effect"), rows)


def settings_page() -> str:
    return f"""# Settings of a project

They are in the table `[tool.ctrlruntime]` of pyproject.toml. `ctrl init`, `ctrl create` and `ctrl edit` write them, and you may edit them. Run
`ctrl manifests` afterwards.

{_settings(Settings)}

## Features

Table `[tool.ctrlruntime.features]`:

{_settings(Features)}

## Resources

Each kind of the project has one table `[[tool.ctrlruntime.resources]]`:

{_settings(Resource)}
"""


def _settings(table: type[Any]) -> str:
    assert is_dataclass(table)
    meanings = _field_docs(table)
    rows = []
    for each in fields(table):
        if each.name in {"features", "resources"}:  # tables of their own
            continue
        if each.default is MISSING and each.default_factory is MISSING:
            default = "required"
        elif each.default is MISSING or each.default in ("", ()):
            default = ""
        else:
            default = f"`{str(each.default).lower()}`"
        rows.append((f"`{each.name.replace('_', '-')}`", default, _sentence(meanings[each.name])))
    return _table(("setting", "default", "meaning"), rows)


def _field_docs(table: type[Any]) -> dict[str, str]:
    """Return the text below each field of a class. Raises: KeyError for a field without one."""
    tree = ast.parse((ROOT / f"{table.__module__.replace('.', '/')}.py").read_text(encoding="utf-8"))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == table.__name__)
    docs = {}
    for node, below in itertools.pairwise(body):
        match node, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docs[name] = text
            case _:
                pass
    return docs


def _sentence(text: str) -> str:
    text = " ".join(text.replace("%%", "%").split())
    return text[:1].upper() + text[1:]


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def changelog_page() -> str:
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](../")


class Recipe(NamedTuple):
    """One module of examples/cookbook, and its page."""

    module: str
    """`hello_configmap`"""

    title: str
    summary: str
    """The rest of the first line of the docstring, a sentence."""

    body: str
    """The paragraphs of the docstring."""

    shows: str
    """The last paragraph of the docstring, without "Shows:"."""

    code: str
    """The module without its docstring."""

    @property
    def page(self) -> str:
        return f"cookbook/{self.module.replace('_', '-')}.md"


def recipes() -> list[Recipe]:
    """Return the recipes in the order of `examples.cookbook.RECIPES`. Raises: ValueError for a docstring of another form."""
    return [_recipe(module) for module in RECIPES]


def _recipe(module: str) -> Recipe:
    source = (COOKBOOK / f"{module}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    docstring = re.fullmatch(r"([^:\n]+): (.+\.)\n\n(.+)\n\nShows: (.+)\n?", ast.get_docstring(tree) or "", re.DOTALL)
    if docstring is None:
        raise ValueError(f'{module}: the docstring is not "Title: summary.", paragraphs, and "Shows: …"')
    title, summary, body, shows = docstring.groups()
    code = source.split("\n", tree.body[0].end_lineno or 0)[-1].lstrip("\n")
    return Recipe(module, title, summary[0].upper() + summary[1:], body, " ".join(shows.split()), code)


def recipe_page(recipe: Recipe) -> str:
    return f"""# {recipe.title}

{recipe.summary}

{recipe.body}

## The operator

```python title="examples/cookbook/{recipe.module}.py"
{recipe.code.rstrip()}
```

`running` is for the recipes. In an operator of your own, create the manager as in [An operator in one file](../learn/one-file.md).

## Run it

In a checkout, start it on the embedded API server. It prints each write:

```console
$ python -m examples.cookbook.{recipe.module} --embedded
```

On a cluster, add `--install` to install the CRDs of the recipe.
{_role_of(recipe)}"""


def _role_of(recipe: Recipe) -> str:
    """Return the section with the role; nothing for an operator that needs no permissions."""
    role = COOKBOOK / "config" / recipe.module / "rbac" / "role.yaml"
    if not role.exists():
        return ""
    return f"""
## The permissions

`ctrl manifests` generates this role from `@ctrl.rbac` and from the controllers that `setup` adds:

```yaml
{role.read_text(encoding="utf-8").rstrip()}
```
"""


def cookbook_page() -> str:
    rows = [(f"[{each.title}]({each.page.removeprefix('cookbook/')})", each.summary, each.shows) for each in recipes()]
    return f"""# Cookbook

Each recipe is a complete operator in one file, which you can run and change. A test runs it on the embedded API server and on a real one. It
checks that the generated role has all permissions and, for recipes with a controller, that a second pass over the same objects writes nothing.

{_table(("recipe", "the operator", "shows"), rows)}

Run one in a checkout of the repository:

```console
$ python -m examples.cookbook.website --embedded
```

[Recipes](../how-to/recipes.md) has shorter solutions, for one task each.
"""


PAGES = {
    "cookbook/index.md": cookbook_page,
    "project/changelog.md": changelog_page,
    "reference/metrics.md": metrics_page,
    "reference/log-events.md": log_events_page,
    "reference/event-reasons.md": event_reasons_page,
    "reference/flags.md": flags_page,
    "reference/settings.md": settings_page,
    "reference/server-options.md": server_page,
}
