"""ctrlruntime: a controller-runtime for Python. `import ctrlruntime as ctrl` and start with `new_manager`.

A manager owns a shared cache, a client that reads from it and writes to the API server, and the controllers that the builder makes:

1. declare a kind: `class Memcached(ctrl.Object, group="cache.example.com", version="v1alpha1")` (`Object`, `Model`, `field`);
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
        api,
        conditions,
        errors,
        event,
        field,
        handler,
        healthz,
        leader,
        log,
        predicate,
        selector,
        source,
        webhook,
    )
    from ctrlruntime.api.kind import OLM, GroupVersionKind, GroupVersionResource, OLMAction, ScalePaths
    from ctrlruntime.api.metadata import Metadata, NamespacedName, ObjectKey
    from ctrlruntime.api.model import Model
    from ctrlruntime.api.object import Object, ObjectList, PartialObjectMetadata, Unstructured, gvk_for, object_key
    from ctrlruntime.builder import new_controller_managed_by
    from ctrlruntime.builder.webhook import new_webhook_managed_by
    from ctrlruntime.cache.options import ByObject, CacheOptions, NamespaceOptions
    from ctrlruntime.cache.reflector import WatchOptions
    from ctrlruntime.client.interceptor import intercept
    from ctrlruntime.client.interfaces import Client, ListResult, Reader, Writer
    from ctrlruntime.client.patches import Patch, json_patch, merge_from, merge_patch, strategic_merge_patch
    from ctrlruntime.client.scoped import dry_run, namespaced, with_field_owner, with_field_validation
    from ctrlruntime.cluster import Cluster
    from ctrlruntime.conditions import (
        find_condition,
        is_condition_false,
        is_condition_true,
        remove_condition,
        set_condition,
    )
    from ctrlruntime.controller import Controller, ControllerDefaults, ControllerOptions
    from ctrlruntime.controller.blocking import blocking
    from ctrlruntime.controller.reconcilers import as_reconciler
    from ctrlruntime.controllerutil import (
        OperationResult,
        add_finalizer,
        contains_finalizer,
        create_or_patch,
        create_or_update,
        delete_tracked_dependents,
        has_controller,
        has_owner,
        remove_controller_reference,
        remove_finalizer,
        remove_owner_reference,
        set_controller_reference,
        set_owner_reference,
    )
    from ctrlruntime.errors import Invalid, TerminalError
    from ctrlruntime.event import CreateEvent, DeleteEvent, GenericEvent, UpdateEvent
    from ctrlruntime.field import Duration, IntOrString, MicroTime, Quantity, Time
    from ctrlruntime.finalizer import Finalizers
    from ctrlruntime.install import install_crds, uninstall_crds
    from ctrlruntime.leaderelection import LeaderElection
    from ctrlruntime.log import get_logger
    from ctrlruntime.manager.flags import Flags, add_flags, parse_flags
    from ctrlruntime.manager.manager import Manager, new_manager, running
    from ctrlruntime.manager.run import run, run_until_signal
    from ctrlruntime.manager.watchdog import Watchdog
    from ctrlruntime.markers import (
        CEL,
        Default,
        EmbeddedResource,
        ExternalDocs,
        Format,
        Immutable,
        Int32,
        Int64,
        JSONValue,
        ListAtomic,
        ListMap,
        ListSet,
        MapAtomic,
        MapGranular,
        MaxProperties,
        MinProperties,
        NoDescriptions,
        Nullable,
        OLMDescriptor,
        PreserveUnknownFields,
        RawExtension,
        Schemaless,
        SchemaType,
        Title,
        printcolumn,
        rbac,
    )
    from ctrlruntime.reconcile import Reconciler, Request, Result, reconcile_id
    from ctrlruntime.recorder import EventRecorder
    from ctrlruntime.rest.config import Config, NoConfigError, get_config
    from ctrlruntime.scheme import Scheme
    from ctrlruntime.serving.connections import ServerLimits
    from ctrlruntime.serving.tls import SecureMetrics
    from ctrlruntime.tracing import Tracing
    from ctrlruntime.tracking import set_tracked_owner, tracking_labels
    from ctrlruntime.webhook import (
        Admission,
        AdmissionRequest,
        AdmissionResponse,
        Conversion,
        Denied,
        DevelopmentMode,
        FieldError,
        MatchCondition,
        SecretCertificates,
        UserInfo,
        Warnings,
        WebhookOptions,
        WebhookRule,
        allowed,
        denied,
        errored,
        invalid,
        patch_response,
        patch_response_from_raw,
    )

__all__ = [
    "CEL",
    "OLM",
    "Admission",
    "AdmissionRequest",
    "AdmissionResponse",
    "ByObject",
    "CacheOptions",
    "Client",
    "Cluster",
    "Config",
    "Controller",
    "ControllerDefaults",
    "ControllerOptions",
    "Conversion",
    "CreateEvent",
    "Default",
    "DeleteEvent",
    "Denied",
    "DevelopmentMode",
    "Duration",
    "EmbeddedResource",
    "EventRecorder",
    "ExternalDocs",
    "FieldError",
    "Finalizers",
    "Flags",
    "Format",
    "GenericEvent",
    "GroupVersionKind",
    "GroupVersionResource",
    "Immutable",
    "Int32",
    "Int64",
    "IntOrString",
    "Invalid",
    "JSONValue",
    "LeaderElection",
    "ListAtomic",
    "ListMap",
    "ListResult",
    "ListSet",
    "Manager",
    "MapAtomic",
    "MapGranular",
    "MatchCondition",
    "MaxProperties",
    "Metadata",
    "MicroTime",
    "MinProperties",
    "Model",
    "NamespaceOptions",
    "NamespacedName",
    "NoConfigError",
    "NoDescriptions",
    "Nullable",
    "OLMAction",
    "OLMDescriptor",
    "Object",
    "ObjectKey",
    "ObjectList",
    "OperationResult",
    "PartialObjectMetadata",
    "Patch",
    "PreserveUnknownFields",
    "Quantity",
    "RawExtension",
    "Reader",
    "Reconciler",
    "Request",
    "Result",
    "ScalePaths",
    "SchemaType",
    "Schemaless",
    "Scheme",
    "SecretCertificates",
    "SecureMetrics",
    "ServerLimits",
    "TerminalError",
    "Time",
    "Title",
    "Tracing",
    "Unstructured",
    "UpdateEvent",
    "UserInfo",
    "Warnings",
    "WatchOptions",
    "Watchdog",
    "WebhookOptions",
    "WebhookRule",
    "Writer",
    "add_finalizer",
    "add_flags",
    "allowed",
    "api",
    "as_reconciler",
    "blocking",
    "conditions",
    "contains_finalizer",
    "create_or_patch",
    "create_or_update",
    "delete_tracked_dependents",
    "denied",
    "dry_run",
    "errored",
    "errors",
    "event",
    "field",
    "find_condition",
    "get_config",
    "get_logger",
    "gvk_for",
    "handler",
    "has_controller",
    "has_owner",
    "healthz",
    "install_crds",
    "intercept",
    "invalid",
    "is_condition_false",
    "is_condition_true",
    "json_patch",
    "leader",
    "log",
    "merge_from",
    "merge_patch",
    "namespaced",
    "new_controller_managed_by",
    "new_manager",
    "new_webhook_managed_by",
    "object_key",
    "parse_flags",
    "patch_response",
    "patch_response_from_raw",
    "predicate",
    "printcolumn",
    "rbac",
    "reconcile_id",
    "remove_condition",
    "remove_controller_reference",
    "remove_finalizer",
    "remove_owner_reference",
    "run",
    "run_until_signal",
    "running",
    "selector",
    "set_condition",
    "set_controller_reference",
    "set_owner_reference",
    "set_tracked_owner",
    "source",
    "strategic_merge_patch",
    "tracking_labels",
    "uninstall_crds",
    "webhook",
    "with_field_owner",
    "with_field_validation",
]

_MODULES = {
    "api.kind": ("OLM", "GroupVersionKind", "GroupVersionResource", "OLMAction", "ScalePaths"),
    "api.metadata": ("Metadata", "NamespacedName", "ObjectKey"),
    "api.object": ("Object", "ObjectList", "PartialObjectMetadata", "Unstructured", "gvk_for", "object_key"),
    "api.model": ("Model",),
    "builder": ("new_controller_managed_by",),
    "builder.webhook": ("new_webhook_managed_by",),
    "cache.options": ("CacheOptions", "ByObject", "NamespaceOptions"),
    "cache.reflector": ("WatchOptions",),
    "client.interceptor": ("intercept",),
    "client.interfaces": ("Client", "ListResult", "Reader", "Writer"),
    "client.patches": ("Patch", "json_patch", "merge_from", "merge_patch", "strategic_merge_patch"),
    "client.scoped": ("dry_run", "namespaced", "with_field_owner", "with_field_validation"),
    "cluster": ("Cluster",),
    "conditions": ("find_condition", "is_condition_false", "is_condition_true", "remove_condition", "set_condition"),
    "controller": ("Controller", "ControllerDefaults", "ControllerOptions"),
    "controller.blocking": ("blocking",),
    "controller.reconcilers": ("as_reconciler",),
    "controllerutil": (
        "OperationResult",
        "add_finalizer",
        "contains_finalizer",
        "create_or_patch",
        "create_or_update",
        "delete_tracked_dependents",
        "has_controller",
        "has_owner",
        "remove_controller_reference",
        "remove_finalizer",
        "remove_owner_reference",
        "set_controller_reference",
        "set_owner_reference",
    ),
    "errors": ("Invalid", "TerminalError"),
    "event": ("CreateEvent", "DeleteEvent", "GenericEvent", "UpdateEvent"),
    "field": ("Duration", "IntOrString", "MicroTime", "Quantity", "Time"),
    "finalizer": ("Finalizers",),
    "install": ("install_crds", "uninstall_crds"),
    "leaderelection": ("LeaderElection",),
    "log": ("get_logger",),
    "manager.flags": ("Flags", "add_flags", "parse_flags"),
    "manager.manager": ("Manager", "new_manager", "running"),
    "manager.run": ("run", "run_until_signal"),
    "manager.watchdog": ("Watchdog",),
    "markers": (
        "CEL",
        "Default",
        "OLMDescriptor",
        "EmbeddedResource",
        "ExternalDocs",
        "Format",
        "Immutable",
        "Int32",
        "Int64",
        "JSONValue",
        "ListAtomic",
        "ListMap",
        "ListSet",
        "MapAtomic",
        "MapGranular",
        "MaxProperties",
        "MinProperties",
        "NoDescriptions",
        "Nullable",
        "PreserveUnknownFields",
        "RawExtension",
        "SchemaType",
        "Schemaless",
        "Title",
        "printcolumn",
        "rbac",
    ),
    "reconcile": ("Reconciler", "Request", "Result", "reconcile_id"),
    "recorder": ("EventRecorder",),
    "rest.config": ("Config", "NoConfigError", "get_config"),
    "scheme": ("Scheme",),
    "serving.connections": ("ServerLimits",),
    "serving.tls": ("SecureMetrics",),
    "tracing": ("Tracing",),
    "tracking": ("set_tracked_owner", "tracking_labels"),
    "webhook": (
        "Admission",
        "AdmissionRequest",
        "AdmissionResponse",
        "Conversion",
        "Denied",
        "DevelopmentMode",
        "FieldError",
        "MatchCondition",
        "SecretCertificates",
        "UserInfo",
        "Warnings",
        "WebhookOptions",
        "WebhookRule",
        "allowed",
        "denied",
        "errored",
        "invalid",
        "patch_response",
        "patch_response_from_raw",
    ),
}
_SUBMODULES = frozenset(
    {
        "api",
        "conditions",
        "errors",
        "event",
        "field",
        "handler",
        "healthz",
        "leader",
        "log",
        "predicate",
        "selector",
        "source",
        "webhook",
    }
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
