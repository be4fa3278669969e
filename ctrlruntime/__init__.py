"""ctrlruntime: a controller-runtime for Python. `import ctrlruntime as ctrl` and start with `new_manager`.

A manager owns a shared cache, a client that reads from it and writes to the API server, and the controllers that the builder makes:

1. declare a kind: `class Memcached(ctrl.Object, group="cache.example.com", version="v1alpha1")` (`Object`, `Wire`, `field`);
2. reconcile it: an object with `async def reconcile(self, request)` that returns None or a `Result`;
3. build: `ctrl.new_controller_managed_by(mgr).for_(Memcached).owns(apps.Deployment).complete(reconciler)`;
4. run: `ctrl.run(mgr)`.

This module re-exports and does nothing else; every name is loaded when it is first used. Built-in kinds are in `ctrlruntime.api`
(`from ctrlruntime.api import apps, core, meta`), errors in `ctrl.errors`, predicates and handlers in `ctrl.predicate` and `ctrl.handler`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ctrlruntime import (
        api as api,
    )
    from ctrlruntime import (
        conditions as conditions,
    )
    from ctrlruntime import (
        errors as errors,
    )
    from ctrlruntime import (
        event as event,
    )
    from ctrlruntime import (
        field as field,
    )
    from ctrlruntime import (
        handler as handler,
    )
    from ctrlruntime import (
        healthz as healthz,
    )
    from ctrlruntime import (
        log as log,
    )
    from ctrlruntime import (
        predicate as predicate,
    )
    from ctrlruntime import (
        selector as selector,
    )
    from ctrlruntime import (
        source as source,
    )
    from ctrlruntime.api.kind import (
        GroupVersionKind as GroupVersionKind,
    )
    from ctrlruntime.api.kind import (
        GroupVersionResource as GroupVersionResource,
    )
    from ctrlruntime.api.kind import (
        ScalePaths as ScalePaths,
    )
    from ctrlruntime.api.metadata import Metadata as Metadata
    from ctrlruntime.api.metadata import NamespacedName as NamespacedName
    from ctrlruntime.api.metadata import ObjectKey as ObjectKey
    from ctrlruntime.api.object import (
        Object as Object,
    )
    from ctrlruntime.api.object import (
        ObjectList as ObjectList,
    )
    from ctrlruntime.api.object import (
        PartialObjectMetadata as PartialObjectMetadata,
    )
    from ctrlruntime.api.object import (
        Unstructured as Unstructured,
    )
    from ctrlruntime.api.object import (
        gvk as gvk,
    )
    from ctrlruntime.api.object import (
        key as key,
    )
    from ctrlruntime.api.wire import Wire as Wire
    from ctrlruntime.builder import new_controller_managed_by as new_controller_managed_by
    from ctrlruntime.cache.options import (
        CacheOptions as CacheOptions,
    )
    from ctrlruntime.cache.options import (
        KindOptions as KindOptions,
    )
    from ctrlruntime.cache.options import (
        NamespaceOptions as NamespaceOptions,
    )
    from ctrlruntime.cache.reflector import WatchOptions as WatchOptions
    from ctrlruntime.client.interfaces import Client as Client
    from ctrlruntime.client.interfaces import Items as Items
    from ctrlruntime.client.interfaces import Reader as Reader
    from ctrlruntime.client.interfaces import Writer as Writer
    from ctrlruntime.client.patches import (
        Patch as Patch,
    )
    from ctrlruntime.client.patches import (
        json_patch as json_patch,
    )
    from ctrlruntime.client.patches import (
        merge_from as merge_from,
    )
    from ctrlruntime.client.patches import (
        merge_patch as merge_patch,
    )
    from ctrlruntime.client.patches import (
        strategic_merge_patch as strategic_merge_patch,
    )
    from ctrlruntime.client.scoped import (
        dry_run as dry_run,
    )
    from ctrlruntime.client.scoped import (
        namespaced as namespaced,
    )
    from ctrlruntime.client.scoped import (
        with_field_owner as with_field_owner,
    )
    from ctrlruntime.client.scoped import (
        with_field_validation as with_field_validation,
    )
    from ctrlruntime.cluster import Cluster as Cluster
    from ctrlruntime.conditions import (
        find_condition as find_condition,
    )
    from ctrlruntime.conditions import (
        is_false as is_false,
    )
    from ctrlruntime.conditions import (
        is_true as is_true,
    )
    from ctrlruntime.conditions import (
        remove_condition as remove_condition,
    )
    from ctrlruntime.conditions import (
        set_condition as set_condition,
    )
    from ctrlruntime.controller import (
        Controller as Controller,
    )
    from ctrlruntime.controller import (
        ControllerConfig as ControllerConfig,
    )
    from ctrlruntime.controller import (
        ControllerOptions as ControllerOptions,
    )
    from ctrlruntime.controllerutil import (
        OperationResult as OperationResult,
    )
    from ctrlruntime.controllerutil import (
        add_finalizer as add_finalizer,
    )
    from ctrlruntime.controllerutil import (
        contains_finalizer as contains_finalizer,
    )
    from ctrlruntime.controllerutil import (
        create_or_patch as create_or_patch,
    )
    from ctrlruntime.controllerutil import (
        create_or_update as create_or_update,
    )
    from ctrlruntime.controllerutil import (
        has_controller as has_controller,
    )
    from ctrlruntime.controllerutil import (
        has_owner as has_owner,
    )
    from ctrlruntime.controllerutil import (
        remove_controller_reference as remove_controller_reference,
    )
    from ctrlruntime.controllerutil import (
        remove_finalizer as remove_finalizer,
    )
    from ctrlruntime.controllerutil import (
        remove_owner_reference as remove_owner_reference,
    )
    from ctrlruntime.controllerutil import (
        set_controller_reference as set_controller_reference,
    )
    from ctrlruntime.controllerutil import (
        set_owner_reference as set_owner_reference,
    )
    from ctrlruntime.errors import TerminalError as TerminalError
    from ctrlruntime.event import (
        CreateEvent as CreateEvent,
    )
    from ctrlruntime.event import (
        DeleteEvent as DeleteEvent,
    )
    from ctrlruntime.event import (
        GenericEvent as GenericEvent,
    )
    from ctrlruntime.event import (
        UpdateEvent as UpdateEvent,
    )
    from ctrlruntime.field import (
        Duration as Duration,
    )
    from ctrlruntime.field import (
        IntOrString as IntOrString,
    )
    from ctrlruntime.field import (
        MicroTime as MicroTime,
    )
    from ctrlruntime.field import (
        Quantity as Quantity,
    )
    from ctrlruntime.field import (
        Time as Time,
    )
    from ctrlruntime.finalizer import FinalizerResult as FinalizerResult
    from ctrlruntime.finalizer import Finalizers as Finalizers
    from ctrlruntime.install import install_crds as install_crds
    from ctrlruntime.install import uninstall_crds as uninstall_crds
    from ctrlruntime.leaderelection import LeaderElection as LeaderElection
    from ctrlruntime.log import get_logger as get_logger
    from ctrlruntime.manager.flags import Flags as Flags
    from ctrlruntime.manager.flags import add_flags as add_flags
    from ctrlruntime.manager.flags import parse_flags as parse_flags
    from ctrlruntime.manager.manager import Manager as Manager
    from ctrlruntime.manager.manager import new_manager as new_manager
    from ctrlruntime.manager.run import run as run
    from ctrlruntime.manager.run import run_until_signal as run_until_signal
    from ctrlruntime.reconcile import Reconciler as Reconciler
    from ctrlruntime.reconcile import Request as Request
    from ctrlruntime.reconcile import Result as Result
    from ctrlruntime.recorder import EventRecorder as EventRecorder
    from ctrlruntime.rest.config import Config as Config
    from ctrlruntime.rest.config import NoConfigError as NoConfigError
    from ctrlruntime.rest.config import get_config as get_config
    from ctrlruntime.scheme import Scheme as Scheme

__all__ = [
    "CacheOptions",
    "Client",
    "Cluster",
    "Config",
    "Controller",
    "ControllerConfig",
    "ControllerOptions",
    "CreateEvent",
    "DeleteEvent",
    "Duration",
    "EventRecorder",
    "FinalizerResult",
    "Finalizers",
    "Flags",
    "GenericEvent",
    "GroupVersionKind",
    "GroupVersionResource",
    "IntOrString",
    "Items",
    "KindOptions",
    "LeaderElection",
    "Manager",
    "Metadata",
    "MicroTime",
    "NamespaceOptions",
    "NamespacedName",
    "NoConfigError",
    "Object",
    "ObjectKey",
    "ObjectList",
    "OperationResult",
    "PartialObjectMetadata",
    "Patch",
    "Quantity",
    "Reader",
    "Reconciler",
    "Request",
    "Result",
    "ScalePaths",
    "Scheme",
    "TerminalError",
    "Time",
    "Unstructured",
    "UpdateEvent",
    "WatchOptions",
    "Wire",
    "Writer",
    "add_finalizer",
    "add_flags",
    "api",
    "conditions",
    "contains_finalizer",
    "create_or_patch",
    "create_or_update",
    "dry_run",
    "errors",
    "event",
    "field",
    "find_condition",
    "get_config",
    "get_logger",
    "gvk",
    "handler",
    "has_controller",
    "has_owner",
    "healthz",
    "install_crds",
    "is_false",
    "is_true",
    "json_patch",
    "key",
    "log",
    "merge_from",
    "merge_patch",
    "namespaced",
    "new_controller_managed_by",
    "new_manager",
    "parse_flags",
    "predicate",
    "remove_condition",
    "remove_controller_reference",
    "remove_finalizer",
    "remove_owner_reference",
    "run",
    "run_until_signal",
    "selector",
    "set_condition",
    "set_controller_reference",
    "set_owner_reference",
    "source",
    "strategic_merge_patch",
    "uninstall_crds",
    "with_field_owner",
    "with_field_validation",
]

_MODULES = {
    "api.kind": (
        "GroupVersionKind",
        "GroupVersionResource",
        "ScalePaths",
    ),
    "api.metadata": (
        "Metadata",
        "NamespacedName",
        "ObjectKey",
    ),
    "api.object": (
        "Object",
        "ObjectList",
        "PartialObjectMetadata",
        "Unstructured",
        "gvk",
        "key",
    ),
    "api.wire": ("Wire",),
    "builder": ("new_controller_managed_by",),
    "cache.options": (
        "CacheOptions",
        "KindOptions",
        "NamespaceOptions",
    ),
    "cache.reflector": ("WatchOptions",),
    "client.interfaces": (
        "Client",
        "Items",
        "Reader",
        "Writer",
    ),
    "client.patches": (
        "Patch",
        "json_patch",
        "merge_from",
        "merge_patch",
        "strategic_merge_patch",
    ),
    "client.scoped": (
        "dry_run",
        "namespaced",
        "with_field_owner",
        "with_field_validation",
    ),
    "cluster": ("Cluster",),
    "conditions": (
        "find_condition",
        "is_false",
        "is_true",
        "remove_condition",
        "set_condition",
    ),
    "controller": (
        "Controller",
        "ControllerConfig",
        "ControllerOptions",
    ),
    "controllerutil": (
        "OperationResult",
        "add_finalizer",
        "contains_finalizer",
        "create_or_patch",
        "create_or_update",
        "has_controller",
        "has_owner",
        "remove_controller_reference",
        "remove_finalizer",
        "remove_owner_reference",
        "set_controller_reference",
        "set_owner_reference",
    ),
    "errors": ("TerminalError",),
    "event": (
        "CreateEvent",
        "DeleteEvent",
        "GenericEvent",
        "UpdateEvent",
    ),
    "field": (
        "Duration",
        "IntOrString",
        "MicroTime",
        "Quantity",
        "Time",
    ),
    "finalizer": (
        "Finalizers",
        "FinalizerResult",
    ),
    "install": (
        "install_crds",
        "uninstall_crds",
    ),
    "leaderelection": ("LeaderElection",),
    "log": ("get_logger",),
    "manager.flags": (
        "Flags",
        "add_flags",
        "parse_flags",
    ),
    "manager.manager": (
        "Manager",
        "new_manager",
    ),
    "manager.run": (
        "run",
        "run_until_signal",
    ),
    "reconcile": (
        "Reconciler",
        "Request",
        "Result",
    ),
    "recorder": ("EventRecorder",),
    "rest.config": (
        "Config",
        "NoConfigError",
        "get_config",
    ),
    "scheme": ("Scheme",),
}
_SUBMODULES = frozenset(
    {"api", "conditions", "errors", "event", "field", "handler", "healthz", "log", "predicate", "selector", "source"}
)
_HOME = {name: module for module, names in _MODULES.items() for name in names}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _SUBMODULES:
            return importlib.import_module(f"ctrlruntime.{name}")
        if name not in _HOME:
            raise AttributeError(f"module 'ctrlruntime' has no attribute {name!r}")
        value = getattr(importlib.import_module(f"ctrlruntime.{_HOME[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
