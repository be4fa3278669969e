"""ctrlruntime: a controller-runtime for Python. `import ctrlruntime as ctrl` and start with `new_manager`.

A manager owns a shared cache, a client that reads from it and writes to the API server, and the controllers that the builder makes:

1. declare a kind: `class Memcached(ctrl.Object, group="cache.example.com", version="v1alpha1")` (`Object`, `Model`, `crd`);
2. reconcile it: an object with `async def reconcile(self, request)` that returns None or a `Result`;
3. build: `ctrl.new_controller_managed_by(mgr).for_(Memcached).owns(apps.Deployment).complete(reconciler)`;
4. run: `ctrl.run(mgr)`.

This module re-exports and does nothing else; every name is loaded when it is first used. Built-in kinds are in `ctrlruntime.api`
(`from ctrlruntime.api import apps, core, meta`). The other names are in modules: `ctrl.crd`, `ctrl.errors`, `ctrl.webhook` and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctrlruntime.lazy import lazy_attributes

if TYPE_CHECKING:
    from ctrlruntime import (
        api,
        cache,
        client,
        controller,
        controllerutil,
        crd,
        errors,
        event,
        handler,
        healthz,
        leader,
        log,
        manager,
        metrics,
        predicate,
        selector,
        source,
        tracing,
        webhook,
        workqueue,
    )
    from ctrlruntime.api.kind import GroupVersionKind
    from ctrlruntime.api.metadata import NamespacedName, ObjectKey
    from ctrlruntime.api.model import Model
    from ctrlruntime.api.object import Object, ObjectList, PartialObjectMetadata, Unstructured, gvk_for, object_key
    from ctrlruntime.builder import new_controller_managed_by
    from ctrlruntime.builder.webhook import new_webhook_managed_by
    from ctrlruntime.cache.options import CacheOptions
    from ctrlruntime.client.interfaces import Client, ListResult, Reader, Writer
    from ctrlruntime.client.patches import json_patch, merge_from, merge_patch, strategic_merge_patch
    from ctrlruntime.cluster import Cluster
    from ctrlruntime.conditions import (
        find_condition,
        is_condition_false,
        is_condition_true,
        remove_condition,
        set_condition,
    )
    from ctrlruntime.controller.blocking import blocking
    from ctrlruntime.controller.controller import Controller
    from ctrlruntime.controller.options import ControllerDefaults, ControllerOptions
    from ctrlruntime.controllerutil import (
        OperationResult,
        add_finalizer,
        contains_finalizer,
        create_or_patch,
        create_or_update,
        remove_finalizer,
        set_controller_reference,
        set_owner_reference,
    )
    from ctrlruntime.errors import (
        AlreadyExists,
        APIStatusError,
        Conflict,
        Forbidden,
        Invalid,
        NotFound,
        RequeueAfter,
        TerminalError,
    )
    from ctrlruntime.field import Duration, IntOrString, MicroTime, Quantity, Time
    from ctrlruntime.finalizer import Finalizers
    from ctrlruntime.fleet.clusters import Fleet
    from ctrlruntime.install import install_crds, uninstall_crds
    from ctrlruntime.leaderelection import LeaderElection
    from ctrlruntime.log import get_logger
    from ctrlruntime.manager.flags import Flags, add_flags, parse_flags
    from ctrlruntime.manager.manager import Manager, new_manager, running
    from ctrlruntime.manager.run import run, run_until_signal
    from ctrlruntime.manager.runnables import Runnable
    from ctrlruntime.markers import Int32, Int64, rbac
    from ctrlruntime.ownership.options import Sharding, ShardKey
    from ctrlruntime.reconcile import Reconciler, Request, Result, reconcile_id
    from ctrlruntime.recorder import EventRecorder
    from ctrlruntime.rest.config import Config, get_config
    from ctrlruntime.scheme import Scheme

__all__ = [
    "APIStatusError",
    "AlreadyExists",
    "CacheOptions",
    "Client",
    "Cluster",
    "Config",
    "Conflict",
    "Controller",
    "ControllerDefaults",
    "ControllerOptions",
    "Duration",
    "EventRecorder",
    "Finalizers",
    "Flags",
    "Fleet",
    "Forbidden",
    "GroupVersionKind",
    "Int32",
    "Int64",
    "IntOrString",
    "Invalid",
    "LeaderElection",
    "ListResult",
    "Manager",
    "MicroTime",
    "Model",
    "NamespacedName",
    "NotFound",
    "Object",
    "ObjectKey",
    "ObjectList",
    "OperationResult",
    "PartialObjectMetadata",
    "Quantity",
    "Reader",
    "Reconciler",
    "Request",
    "RequeueAfter",
    "Result",
    "Runnable",
    "Scheme",
    "ShardKey",
    "Sharding",
    "TerminalError",
    "Time",
    "Unstructured",
    "Writer",
    "add_finalizer",
    "add_flags",
    "api",
    "blocking",
    "cache",
    "client",
    "contains_finalizer",
    "controller",
    "controllerutil",
    "crd",
    "create_or_patch",
    "create_or_update",
    "errors",
    "event",
    "find_condition",
    "get_config",
    "get_logger",
    "gvk_for",
    "handler",
    "healthz",
    "install_crds",
    "is_condition_false",
    "is_condition_true",
    "json_patch",
    "leader",
    "log",
    "manager",
    "merge_from",
    "merge_patch",
    "metrics",
    "new_controller_managed_by",
    "new_manager",
    "new_webhook_managed_by",
    "object_key",
    "parse_flags",
    "predicate",
    "rbac",
    "reconcile_id",
    "remove_condition",
    "remove_finalizer",
    "run",
    "run_until_signal",
    "running",
    "selector",
    "set_condition",
    "set_controller_reference",
    "set_owner_reference",
    "source",
    "strategic_merge_patch",
    "tracing",
    "uninstall_crds",
    "webhook",
    "workqueue",
]

_MODULES = {
    "api.kind": ("GroupVersionKind",),
    "api.metadata": ("NamespacedName", "ObjectKey"),
    "api.model": ("Model",),
    "api.object": ("Object", "ObjectList", "PartialObjectMetadata", "Unstructured", "gvk_for", "object_key"),
    "builder": ("new_controller_managed_by",),
    "builder.webhook": ("new_webhook_managed_by",),
    "cache.options": ("CacheOptions",),
    "client.interfaces": ("Client", "ListResult", "Reader", "Writer"),
    "client.patches": ("json_patch", "merge_from", "merge_patch", "strategic_merge_patch"),
    "cluster": ("Cluster",),
    "conditions": ("find_condition", "is_condition_false", "is_condition_true", "remove_condition", "set_condition"),
    "controller.controller": ("Controller",),
    "controller.options": ("ControllerDefaults", "ControllerOptions"),
    "controller.blocking": ("blocking",),
    "controllerutil": (
        "OperationResult",
        "add_finalizer",
        "contains_finalizer",
        "create_or_patch",
        "create_or_update",
        "remove_finalizer",
        "set_controller_reference",
        "set_owner_reference",
    ),
    "errors": (
        "APIStatusError",
        "AlreadyExists",
        "Conflict",
        "Forbidden",
        "Invalid",
        "NotFound",
        "RequeueAfter",
        "TerminalError",
    ),
    "field": ("Duration", "IntOrString", "MicroTime", "Quantity", "Time"),
    "finalizer": ("Finalizers",),
    "fleet.clusters": ("Fleet",),
    "install": ("install_crds", "uninstall_crds"),
    "leaderelection": ("LeaderElection",),
    "log": ("get_logger",),
    "manager.flags": ("Flags", "add_flags", "parse_flags"),
    "manager.manager": ("Manager", "new_manager", "running"),
    "manager.run": ("run", "run_until_signal"),
    "manager.runnables": ("Runnable",),
    "markers": ("Int32", "Int64", "rbac"),
    "ownership.options": ("ShardKey", "Sharding"),
    "reconcile": ("Reconciler", "Request", "Result", "reconcile_id"),
    "recorder": ("EventRecorder",),
    "rest.config": ("Config", "get_config"),
    "scheme": ("Scheme",),
}
_SUBMODULES = frozenset(
    {
        "api",
        "cache",
        "client",
        "controller",
        "controllerutil",
        "crd",
        "errors",
        "event",
        "handler",
        "healthz",
        "leader",
        "log",
        "manager",
        "metrics",
        "predicate",
        "selector",
        "source",
        "tracing",
        "webhook",
        "workqueue",
    }
)
_HOME = {name: module for module, names in _MODULES.items() for name in names}

if not TYPE_CHECKING:
    __getattr__ = lazy_attributes(
        __name__, dict.fromkeys(_SUBMODULES, "") | {name: f".{module}" for name, module in _HOME.items()}
    )

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
