"""The alert rules and the dashboard that users download use only metrics and labels that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
OPERATE = ROOT / "docs/operate"
SITE = "https://ctrlruntime.dev/"

FROM_ELSEWHERE = ("process_resident_memory_bytes", "process_cpu_seconds_total", "up")
"""Metrics of prometheus_client and of Prometheus itself."""

TARGET_LABELS = {"namespace", "job", "pod", "instance"}
"""Labels that Prometheus adds to each sample of a target."""

FUNCTIONS = {"by", "sum", "max", "rate", "increase", "histogram_quantile", "label_values"}

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_WORD = re.compile(r"[a-zA-Z_]\w*")
_METRIC = re.compile(r"(?P<name>[a-zA-Z_]\w*)(?P<selector>\{[^}]*\})?")
_GROUPING = re.compile(r"\bby\s*\(([^)]*)\)")


@pytest.fixture(scope="module")
def known(site_pages: ModuleType) -> dict[str, set[str]]:
    """Return the labels of each sample by its name."""
    samples: dict[str, set[str]] = {name: set() for name in FROM_ELSEWHERE}
    for family in site_pages.metric_families():
        labels = set(getattr(family, "_labelnames", ()))
        if family.type == "histogram":
            samples |= {
                f"{family.name}_bucket": {*labels, "le"},
                f"{family.name}_sum": labels,
                f"{family.name}_count": labels,
            }
        else:
            samples[family.name + ("_total" if family.type == "counter" else "")] = labels
    return samples


@pytest.fixture(scope="module")
def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load((OPERATE / "alerts.yaml").read_text(encoding="utf-8"))
    assert set(document) == {"groups"}
    return [rule for group in document["groups"] for rule in group["rules"]]


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    return json.loads((OPERATE / "dashboard.json").read_text(encoding="utf-8"))


def problems(expression: str, known: dict[str, set[str]]) -> Iterator[str]:
    """Yield the names in a query that do not exist: metrics, labels of selectors, and labels of groupings."""
    plain = _STRING.sub('""', expression)
    groupings = [label for found in _GROUPING.finditer(plain) for label in _WORD.findall(found[1])]
    plain = re.sub(r"\[[^\]]*\]", "", _GROUPING.sub("by ", plain))
    names: list[str] = []
    for found in _METRIC.finditer(plain):
        name, labels = found["name"], _WORD.findall(found["selector"] or "")
        if name in FUNCTIONS:
            continue
        if name not in known:
            yield f"metric {name}"
            continue
        names.append(name)
        yield from (f"label {label} of {name}" for label in labels if label not in known[name] | TARGET_LABELS)
    if not names:
        yield "no metric"
    yield from (
        f"grouping by {label}, which {name} lacks"
        for label in groupings
        for name in names
        if label not in known[name] | TARGET_LABELS
    )


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('sum by (job, controller) (rate(controller_runtime_reconcile_total{result="x"}[5m])) > 0', []),
        ("rate(controller_runtime_reconciles_total[5m])", ["metric controller_runtime_reconciles_total", "no metric"]),
        ('workqueue_depth{nam="x"}', ["label nam of workqueue_depth"]),
        ("sum by (kind) (workqueue_depth)", ["grouping by kind, which workqueue_depth lacks"]),
        ("sum(up) > 0", []),
    ],
)
def test_problems_names_unknown_metrics_and_labels(expression, expected, known):
    assert list(problems(expression, known)) == expected


def test_alert_rules_use_existing_metrics_and_labels(rules, known):
    assert {rule["alert"]: list(problems(rule["expr"], known)) for rule in rules} == {
        rule["alert"]: [] for rule in rules
    }


def test_alert_rules_have_time_severity_summary_and_description(rules):
    for rule in rules:
        assert re.fullmatch(r"\d+[mh]", rule["for"]), rule["alert"]
        assert rule["labels"]["severity"] in {"critical", "warning"}, rule["alert"]
        assert rule["annotations"]["summary"].strip(), rule["alert"]
        assert rule["annotations"]["description"].strip(), rule["alert"]


def test_alert_rules_have_names_of_their_own(rules):
    names = [rule["alert"] for rule in rules]

    assert len(names) == len(set(names))


def test_alert_summaries_use_only_labels_of_the_result(rules):
    for rule in rules:
        used = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
        grouping = _GROUPING.search(rule["expr"])
        result = set(_WORD.findall(grouping[1])) if grouping else TARGET_LABELS
        assert used <= result, rule["alert"]


def test_alert_rules_link_to_sections_that_exist(rules):
    for rule in rules:
        page, _, anchor = rule["annotations"]["runbook_url"].removeprefix(SITE).partition("/#")
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        assert anchor in {heading.lower().replace(" ", "-") for heading in headings}, rule["alert"]


def test_alert_rules_are_all_in_the_table_of_the_page(rules):
    page = (OPERATE / "monitoring.md").read_text(encoding="utf-8")

    assert re.findall(r"^\| `([A-Z]\w+)` \|", page, re.MULTILINE) == [rule["alert"] for rule in rules]


def test_dashboard_panels_have_titles_and_queries_of_existing_metrics(dashboard, known):
    for panel in dashboard["panels"]:
        assert panel["title"].strip()
        assert panel["description"].strip()
        assert panel["targets"], panel["title"]
        for target in panel["targets"]:
            assert list(problems(target["expr"], known)) == [], panel["title"]


def test_dashboard_legends_use_only_labels_of_the_result(dashboard):
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            grouping = _GROUPING.search(target["expr"])
            used = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert used <= set(_WORD.findall(grouping[1]) if grouping else ()), panel["title"]


def test_dashboard_panels_have_ids_of_their_own_and_do_not_overlap(dashboard):
    ids = [panel["id"] for panel in dashboard["panels"]]
    cells = [
        (x, y)
        for at in (panel["gridPos"] for panel in dashboard["panels"])
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]

    assert len(ids) == len(set(ids))
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_dashboard_selects_data_source_namespace_and_job(dashboard, known):
    variables = {each["name"]: each for each in dashboard["templating"]["list"]}

    assert list(variables) == ["datasource", "namespace", "job", "controller"]
    assert variables["datasource"]["type"] == "datasource"
    for name in ("namespace", "job", "controller"):
        metric, _, label = (
            variables[name]["definition"].removeprefix("label_values(").removesuffix(")").rpartition(", ")
        )
        assert list(problems(metric, known)) == []
        assert label in TARGET_LABELS | known[metric.partition("{")[0]]
    for panel in dashboard["panels"]:
        assert panel["datasource"]["uid"] == "${datasource}", panel["title"]
        for target in panel["targets"]:
            assert target["expr"].count('namespace=~"$namespace",job=~"$job"') >= 1, panel["title"]
