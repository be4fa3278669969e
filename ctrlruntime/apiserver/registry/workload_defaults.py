"""Defaults of the kinds that make Pods, and of the autoscaler."""

from __future__ import annotations

from typing import Final

from ctrlruntime.apiserver.go_values import parse_int
from ctrlruntime.apiserver.registry.autoscaler_conversion import drop_v1_annotations, from_v2, to_v2
from ctrlruntime.apiserver.registry.pod_defaults import default_pod_spec, default_template
from ctrlruntime.apiserver.registry.storage_defaults import persistent_volume_claim
from ctrlruntime.apiserver.registry.trees import ensure_spec, inner, items, put, put_absent
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.undecodable import undecodable

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def deployment(document: Document) -> None:
    spec = ensure_spec(document)
    put(spec, "replicas", 1)
    strategy: Document = spec.setdefault("strategy", {})
    put(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _put_shares(strategy, unavailable="25%", surge="25%")
    put(spec, "revisionHistoryLimit", 10)
    put(spec, "progressDeadlineSeconds", 600)
    default_template(document)


def _put_shares(strategy: Document, *, unavailable: int | str, surge: int | str) -> None:
    put(strategy, "rollingUpdate", {})
    rolling = strategy["rollingUpdate"]
    for name, share in (("maxUnavailable", unavailable), ("maxSurge", surge)):
        if rolling.get(name) is None:  # an empty text is a share, and refused
            rolling[name] = share


def replica_set(document: Document) -> None:
    put(ensure_spec(document), "replicas", 1)
    default_template(document)


def replication_controller(document: Document) -> None:
    spec = ensure_spec(document)
    put(spec, "replicas", 1)
    labels = inner(spec, "template", "metadata", "labels")
    if labels:
        put(spec, "selector", dict(labels))
        put(document["metadata"], "labels", dict(labels))
    default_template(document)


def stateful_set(document: Document) -> None:
    spec = ensure_spec(document)
    put(spec, "podManagementPolicy", "OrderedReady")
    strategy: Document = spec.setdefault("updateStrategy", {})
    put(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        put(strategy, "rollingUpdate", {})
        put(strategy["rollingUpdate"], "partition", 0)
    retention: Document = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    put(retention, "whenDeleted", "Retain")
    put(retention, "whenScaled", "Retain")
    put(spec, "replicas", 1)
    put(spec, "revisionHistoryLimit", 10)
    for claim in items(spec, "volumeClaimTemplates"):
        claim.update({"kind": "PersistentVolumeClaim", "apiVersion": "v1"})
        persistent_volume_claim(claim)
    default_template(document)


def daemon_set(document: Document) -> None:
    annotations: Document = document["metadata"].setdefault("annotations", {})
    count = annotations.setdefault(TEMPLATE_GENERATION, "0")  # counted when it is stored
    try:
        annotations[TEMPLATE_GENERATION] = str(parse_int(count))
    except ValueError as error:
        raise undecodable("DaemonSet", "v1", str(error), is_conversion=True) from None
    spec = ensure_spec(document)
    strategy: Document = spec.setdefault("updateStrategy", {})
    put(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _put_shares(strategy, unavailable=1, surge=0)
    elif strategy.get("rollingUpdate") is not None:  # internally these are no pointers (pkg/apis/apps/types.go)
        _put_shares(strategy, unavailable=0, surge=0)
    put(spec, "revisionHistoryLimit", 10)
    default_template(document)


def job(document: Document) -> None:
    spec, metadata = ensure_spec(document), document["metadata"]
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels and not metadata.get("labels"):
        # Not a copy: upstream's Job shares the map with its template, and gets the labels that the selector needs, too.
        metadata["labels"] = labels
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    put(spec, "parallelism", 1)
    put(spec, "backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1)
    put_absent(spec, "completionMode", "NonIndexed")
    put(spec, "suspend", False)
    put(spec, "manualSelector", False)
    put_absent(
        spec, "podReplacementPolicy", "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"
    )
    for rule in items(inner(spec, "podFailurePolicy") or {}, "rules"):
        for pattern in items(rule, "onPodConditions"):
            put(pattern, "status", "True")
    default_template(document)


def cron_job(document: Document) -> None:
    spec = ensure_spec(document)
    put(spec, "concurrencyPolicy", "Allow")
    put(spec, "suspend", False)
    put(spec, "successfulJobsHistoryLimit", 3)
    put(spec, "failedJobsHistoryLimit", 1)
    template = inner(spec, "jobTemplate")
    if template is not None:
        default_template(template)


def horizontal_pod_autoscaler(document: Document) -> None:
    spec = ensure_spec(document)
    put(spec, "minReplicas", 1)
    if document.get("apiVersion") != "autoscaling/v2":
        from_v2(to_v2(document))  # what upstream reads is converted, and shown as converted back
        return
    drop_v1_annotations(document)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = inner(spec, "behavior")
    if behavior is not None:
        percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
        four = {"type": "Pods", "value": 4, "periodSeconds": 15}
        up = _scaling_rules(behavior, "scaleUp", [four, percent])
        put(up, "stabilizationWindowSeconds", 0)
        _scaling_rules(behavior, "scaleDown", [percent])


def _scaling_rules(behavior: Document, side: str, policies: list[Document]) -> Document:
    rules: Document = behavior.setdefault(side, {})
    if rules.get("selectPolicy") is None:  # an empty text is a policy, and refused
        rules["selectPolicy"] = "Max"
    if rules.get("policies") is None:
        rules["policies"] = [dict(policy) for policy in policies]
    return rules


def pod_template(document: Document) -> None:
    default_pod_spec(document.setdefault("template", {}).setdefault("spec", {}))
