"""Names that were replaced before the first release. Each has one name now, and the old one is not accepted anywhere."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

import ctrlruntime as ctrl
from ctrlruntime.cli import ctrl as program
from ctrlruntime.errors import ConfigError
from ctrlruntime.project.settings import read_settings

ATTRIBUTES = {
    "ctrlruntime": [
        "Wire",
        "key",
        "gvk",
        "PreserveUnknown",
        "Descriptor",
        "Items",
        "KindOptions",
        "is_true",
        "is_false",
        "tracked_by",
        "delete_tracked",
        "patched",
        "patched_from_raw",
        "Development",
        "FinalizerResult",
        "Metadata",
    ],
    "ctrlruntime.finalizer:Finalizers": ["finalize"],
    "ctrlruntime.manager.manager:Manager": ["ask"],
    "ctrlruntime.serving.loops": ["LoopBlockedError"],
    "ctrlruntime.testing": ["NothingHappensError"],
    "ctrlruntime.testing.faults:FaultProxy": ["drop_answer", "answer", "poison", "rewind", "cut", "end", "drip"],
    "ctrlruntime.webhook": ["BadObjectError", "Development", "patched", "patched_from_raw"],
    "ctrlruntime.workqueue": [
        "ShutDown",
        "BucketLimiter",
        "ItemExponentialBackoff",
        "ItemFastSlow",
        "MaxOf",
        "WithMaxWait",
    ],
    "ctrlruntime.api": ["Wire", "key", "gvk"],
    "ctrlruntime.cache.cache:Cache": ["find", "remove", "wait_synced"],
    "ctrlruntime.cluster:Cluster": ["run", "election_client", "close_election", "run_recorders"],
    "ctrlruntime.errors": ["NotInCacheError", "OutsideCacheError", "PASSING"],
    "ctrlruntime.markers": ["PreserveUnknown", "Descriptor"],
    "ctrlruntime.api.object:Object": ["from_wire", "to_wire", "apply_form"],
    "ctrlruntime.api.object:Unstructured": ["from_wire", "to_wire", "apply_form"],
    "ctrlruntime:Client": ["find"],
    "ctrlruntime:Reader": ["find"],
    "ctrlruntime:ListResult": ["metas", "raws", "readable", "unreadable"],
    "ctrlruntime.source:Source": ["synced"],
    "ctrlruntime.api.model:Model": ["from_wire", "to_wire", "apply_form"],
}
MOVED = {
    "api": ["GroupVersionResource"],
    "cache": ["ByObject", "NamespaceOptions", "WatchOptions"],
    "client": ["Patch", "dry_run", "intercept", "namespaced", "with_field_owner", "with_field_validation"],
    "controller": ["as_reconciler"],
    "controllerutil": [
        "delete_tracked_dependents",
        "has_controller",
        "has_owner",
        "remove_controller_reference",
        "remove_owner_reference",
        "set_tracked_owner",
        "tracking_labels",
    ],
    "crd": ["CEL", "Default", "Format", "ListMap", "Nullable", "OLM", "ScalePaths", "printcolumn"],
    "errors": ["NoConfigError"],
    "event": ["CreateEvent", "DeleteEvent", "GenericEvent", "UpdateEvent"],
    "manager": ["ServerLimits", "Watchdog"],
    "metrics": ["SecureMetrics"],
    "tracing": ["Tracing"],
    "webhook": ["Admission", "Conversion", "FieldError", "Warnings", "WebhookOptions", "allowed", "denied", "invalid"],
}
"""Names that were in `ctrl` itself, by the module that has them now."""

MODULES = ["ctrlruntime.api.wire"]
PARAMETERS = {
    "ctrlruntime:CacheOptions": ["by_kind", "unwatched_reads"],
    "ctrlruntime.cache:WatchOptions": ["length", "grace", "patience", "calm", "absent_poll"],
    "ctrlruntime:new_manager": ["live_kinds", "read_your_writes_wait"],
    "ctrlruntime.webhook:Admission": ["reads"],
    "ctrlruntime.webhook:AdmissionRequest.decode": ["limits"],
    "ctrlruntime:Client.delete": ["propagation"],
    "ctrlruntime:LeaderElection": ["release_on_stop"],
    "ctrlruntime.manager:Watchdog": ["give_up_after"],
    "ctrlruntime.handler:enqueue_request_for_owner": ["only_controller"],
    "ctrlruntime:Client.get": ["or_live"],
    "ctrlruntime:Client.watch": ["length"],
}


def pairs(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(place, name) for place, names in table.items() for name in names]


@pytest.mark.parametrize(("place", "name"), pairs(ATTRIBUTES))
def test_removed_attribute_is_missing(place, name):
    assert not hasattr(pkgutil.resolve_name(place), name)


@pytest.mark.parametrize(("module", "name"), pairs(MOVED))
def test_moved_name_is_in_its_module_alone(module, name):
    assert hasattr(pkgutil.resolve_name(f"ctrlruntime.{module}"), name)
    assert not hasattr(ctrl, name)


OPTIONS = [
    ["check", "-"],
    ["deploy", "--wait", "1"],
    ["undeploy", "--wait", "1"],
    ["undeploy", "--drop-finalizers"],
    ["install", "--wait", "1"],
    ["bundle", "--pin", "registry"],
]


@pytest.mark.parametrize("arguments", OPTIONS, ids=" ".join)
def test_removed_command_or_option_is_a_usage_error(arguments):
    done = CliRunner().invoke(program, arguments)

    assert done.exit_code == 2
    assert "No such" in done.stderr


SETTINGS = ["source", "scaffolded-by"]
RESOURCE_SETTINGS = ["image-command", "image-port"]


@pytest.mark.parametrize("name", [*SETTINGS, *RESOURCE_SETTINGS])
def test_removed_setting_is_refused(tmp_path, name):
    table = "[tool.ctrlruntime]\nproject-name = 'shop'\npackage = 'shop'\ndomain = 'x.io'\n"
    if name in RESOURCE_SETTINGS:
        table += "[[tool.ctrlruntime.resources]]\ngroup = ''\nversion = 'v1'\nkind = 'K'\nplural = 'ks'\n"
    (tmp_path / "pyproject.toml").write_text(f"{table}{name} = 'x'\n")

    with pytest.raises(ConfigError, match=f"unknown.*{name}|{name}.*unknown"):
        read_settings(tmp_path)


@pytest.mark.parametrize("name", MODULES)
def test_removed_module_is_missing(name):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(name)


@pytest.mark.parametrize(("place", "name"), pairs(PARAMETERS))
def test_removed_parameter_is_missing(place, name):
    assert name not in inspect.signature(pkgutil.resolve_name(place)).parameters


# --- what is written for search: logs, metrics, reasons ------------------------------------------------------------------

LOG_KEYS = {"stands_at", "where", "add", "why", "other", "start", "seconds"}
LOG_METHODS = {"bind", "bound", "debug", "info", "warning", "error", "exception"}
PARAMETERS_OF_LOGGING = {"exc_info"}


class Written(NamedTuple):
    """What the modules of the package contain."""

    log_calls: list[tuple[str, ast.Call]]
    """Calls such as `self._log.info("…", key=…)` and `log.bound(key=…)`, with their file."""
    strings: set[tuple[str, str]]
    """Each string constant, with its file."""


@pytest.fixture(scope="module")
def written() -> Written:
    found = Written([], set())
    for path in sorted(Path(ctrl.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Constant(value=str(text)):
                    found.strings.add((path.name, text))
                case ast.Call(func=ast.Attribute(value=log, attr=method)) if method in LOG_METHODS:
                    if "log" in ast.unparse(log):
                        found.log_calls.append((path.name, node))
    return found


def test_log_keys_are_todays_and_in_camel_case(written):
    keys = {each.arg: file for file, call in written.log_calls for each in call.keywords if each.arg is not None}

    assert len(keys) > 50
    wrong = {key: file for key, file in keys.items() if key in LOG_KEYS or "_" in key}
    assert wrong.keys() <= PARAMETERS_OF_LOGGING, wrong


def test_log_events_are_short_and_leave_advice_to_the_hint(written):
    firsts = [call.args[0] for _, call in written.log_calls if call.args]
    events = [first.value for first in firsts if isinstance(first, ast.Constant)]

    assert len(events) > 100
    assert [event for event in events if len(event) > 60 or any(mark in event for mark in ";?(.")] == []


WORDS = {
    "ctrlruntime_cache_last_proof_of_life_seconds",
    "ctrlruntime_client_live_reads_total",
    "ctrlruntime_client_wasted_writes_total",
    "nothing_changed",
    "undone",
    "fought_over",
    "because",
    "unseen",
}
"""Metrics, their reasons, and labels of `ctrl why`."""


def test_no_string_of_the_package_is_an_old_metric_reason_or_label(written):
    assert {(file, text) for file, text in written.strings if text in WORDS} == set()
