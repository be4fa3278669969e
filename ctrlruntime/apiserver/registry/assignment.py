"""What the built-in admission plugins and the strategies of kinds set on an object, beyond the defaults of its type.

Takes the stored form of an object that was defaulted and changes it in place; it also reads what exists, to find classes and accounts.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.interfaces import API
from ctrlruntime.apiserver.registry import services
from ctrlruntime.apiserver.registry.autoscaler_conversion import from_v2, to_v2
from ctrlruntime.apiserver.registry.claim_validation import settle_data_source
from ctrlruntime.apiserver.registry.defaults import default
from ctrlruntime.apiserver.registry.trees import ensure_spec, put
from ctrlruntime.apiserver.registry.workload_defaults import TEMPLATE_GENERATION
from ctrlruntime.schema.trees import Document, copy_tree
from ctrlruntime.schema.values import spec_of, without

_OTHER_OVERHEAD: Final = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


def assign(
    group: str, kind: str, document: Document, api: API, plugins: Collection[str], *, old: Document | None = None
) -> None:
    """Set what admission plugins and the strategy of a kind set, before validation; metadata.uid must be set.

    `plugins` are the names of the admission plugins that act; `old` is the stored object when this is an update.

    Raises: Forbidden when what a Pod asks for is not there or not its to ask (priority, runtime class).
    """
    match (group, kind):
        case ("", "Pod"):
            _assign_pod(document, api, plugins, old)
        case ("", "Service"):
            services.prepare(document, old)
        case ("", "Namespace") if old is None:
            finalizers: list[str] = ensure_spec(document).setdefault("finalizers", [])
            if "kubernetes" not in finalizers:
                finalizers.append("kubernetes")
        case ("", "Node") if old is None and "TaintNodesByCondition" in plugins:
            _assign_node(document)
        case ("", "PersistentVolumeClaim"):
            settle_data_source(ensure_spec(document), spec_of(old))
        case ("", "PersistentVolume") if old is None:
            moment = document["metadata"].get("creationTimestamp")
            document.setdefault("status", {}).setdefault("lastPhaseTransitionTime", moment)
        case ("autoscaling", "HorizontalPodAutoscaler"):
            _settle_autoscaler(document, old)
        case ("apps", "DaemonSet"):
            _count_template(document, old)
        case ("batch", "Job") if old is None:
            _assign_job(document)
        case _:
            pass


def confirm_account(document: Document, api: API) -> None:
    """Do what the admission plugin ServiceAccount does, except for the token's volume: set the account and check that it exists.

    Raises: Forbidden when it is not.
    """
    metadata, spec = document["metadata"], ensure_spec(document)
    if "kubernetes.io/config.mirror" in (metadata.get("annotations") or {}):
        return
    namespace, name = metadata["namespace"], spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    if api.get("", "serviceaccounts", namespace, name) is None:
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise _forbidden_pod(document, why)


def _assign_pod(document: Document, api: API, plugins: Collection[str], old: Document | None) -> None:
    """Do what the admission plugins Priority, DefaultTolerationSeconds and RuntimeClass do."""
    spec = ensure_spec(document)
    if "Priority" in plugins:
        if old is None:
            _assign_priority(document, spec, api)
        else:
            _keep_priority(spec, spec_of(old))
    if "DefaultTolerationSeconds" in plugins:
        _assign_tolerations(spec)
    if old is None and "RuntimeClass" in plugins:
        _assign_runtime(document, spec, api)


def _keep_priority(spec: Document, before: Document) -> None:
    for name in ("priority", "preemptionPolicy"):
        if name in before:
            put(spec, name, before[name])


def _assign_tolerations(spec: Document) -> None:
    tolerations: list[Document] = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_tolerates(toleration, key) for toleration in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})


def _assign_runtime(document: Document, spec: Document, api: API) -> None:
    """Set the overhead of a runtime class and where its Pods may run (plugin/pkg/admission/runtimeclass/admission.go)."""
    fixed, scheduling = _runtime_of(document, spec, api)
    if fixed is not None:
        if spec.get("overhead") not in (None, {}, fixed):
            raise _forbidden_pod(document, _OTHER_OVERHEAD)
        spec["overhead"] = dict(fixed)
    selector, wanted = spec.get("nodeSelector") or {}, scheduling.get("nodeSelector") or {}
    for key, value in wanted.items():
        if selector.get(key, value) != value:
            why = (
                f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
            raise _forbidden_pod(document, f"conflict: {why}")
    if wanted:
        spec["nodeSelector"] = {**selector, **wanted}
    if scheduling:
        spec["tolerations"] = _without_contained(
            [*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())]
        )


def _runtime_of(document: Document, spec: Document, api: API) -> tuple[Document | None, Document]:
    """Return the overhead and the scheduling of a Pod's runtime class. Raises: Forbidden when the class is not there."""
    name = spec.get("runtimeClassName")
    if name == "":
        raise failures.plain_internal("resource name may not be empty")
    chosen = api.get("node.k8s.io", "runtimeclasses", "", name) if name else {}
    if chosen is None:
        raise _forbidden_pod(document, f'pod rejected: RuntimeClass "{name}" not found')
    return (chosen.get("overhead") or {}).get("podFixed"), chosen.get("scheduling") or {}


def _without_contained(tolerations: list[Document]) -> list[Document]:
    """Leave out tolerations that others contain (MergeTolerations in pkg/util/tolerations)."""
    kept: list[Document] = []
    for index, one in enumerate(tolerations):
        later = (other for other in tolerations[index + 1 :] if other != one)
        if not any(_contains(other, one) for other in (*kept, *later)):
            kept.append(one)
    return kept


def _contains(whole: Document, part: Document) -> bool:
    if whole == part:
        return True
    seconds = whole.get("tolerationSeconds")
    is_everything = not whole.get("key") and whole.get("operator") == "Exists"
    if not is_everything and whole.get("key") != part.get("key"):
        return False
    if whole.get("effect") and whole["effect"] != part.get("effect"):
        return False
    if (
        whole.get("effect") == "NoExecute"
        and seconds is not None
        and part.get("tolerationSeconds", seconds + 1) > seconds
    ):
        return False
    is_equal = part.get("operator") == "Equal" and part.get("value") == whole.get("value")
    return whole.get("operator") == "Exists" or is_equal


def confirm_overhead(document: Document, api: API) -> None:
    """Check that the overhead of a Pod is that of its runtime class, after webhooks and validation. Raises: Forbidden."""
    fixed, _ = _runtime_of(document, document["spec"], api)
    overhead = document["spec"].get("overhead")
    if fixed is not None and fixed != overhead:
        raise _forbidden_pod(document, _OTHER_OVERHEAD)
    if fixed is None and overhead is not None:
        why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise _forbidden_pod(document, why)


def _forbidden_pod(document: Document, why: str) -> Exception:
    return failures.forbidden("pods", "", str(document["metadata"].get("name", "")), why)


def _assign_priority(document: Document, spec: Document, api: API) -> None:
    name = str(spec.get("priorityClassName", ""))
    chosen = _priority_class_of(name, api)
    if name and chosen is None:
        raise _forbidden_pod(document, f"no PriorityClass with name {name} was found")
    if chosen is not None:
        spec["priorityClassName"] = chosen["metadata"]["name"]
    value = int(chosen["value"]) if chosen else 0
    policy = str((chosen or {}).get("preemptionPolicy", "PreemptLowerPriority"))
    for field, kind, computed in (
        ("priority", "the integer value of priority", value),
        ("preemptionPolicy", "the string value of PreemptionPolicy", policy),
    ):
        given = spec.get(field)
        if given is not None and given != computed:
            why = f"priority admission controller computed {computed} from the given PriorityClass name"
            raise _forbidden_pod(document, f"{kind} ({given}) must not be provided in pod spec; {why}")
        spec[field] = computed


def _priority_class_of(name: str, api: API) -> Document | None:
    """Return the class of that name; without a name the one that is the default, if there is one."""
    if name:
        return api.get("scheduling.k8s.io", "priorityclasses", "", name)
    classes = api.list("scheduling.k8s.io", "priorityclasses")
    if len(classes) <= 2:  # the two that every cluster has are not defaults
        return None
    defaults = [found for found in classes if found.get("globalDefault")]
    return min(defaults, key=lambda found: int(found["value"]), default=None)


def _tolerates(toleration: Document, key: str) -> bool:
    return toleration.get("key") in {None, "", key} and toleration.get("effect") in {None, "", "NoExecute"}


def _assign_node(document: Document) -> None:
    """A new node counts as not ready until it says otherwise."""
    taints: list[Document] = ensure_spec(document).setdefault("taints", [])
    key = "node.kubernetes.io/not-ready"
    if not any(taint.get("key") == key and taint.get("effect") == "NoSchedule" for taint in taints):
        taints.append({"key": key, "effect": "NoSchedule"})


def _settle_autoscaler(document: Document, old: Document | None) -> None:
    """Write the annotations of v1 anew: upstream makes them of the object that it stores, in v2."""
    if document.get("apiVersion") != "autoscaling/v1":
        return
    version, status = document["apiVersion"], dict(document.get("status") or {})
    before = to_v2(copy_tree(old)) if old is not None and old.get("apiVersion") == version else old or {}
    to_v2(document)
    document.update(apiVersion="autoscaling/v2", status=copy_tree(before.get("status") or {}))
    default("autoscaling", "HorizontalPodAutoscaler", document)
    from_v2(document)
    document.update(apiVersion=version, status={**status, **document["status"]})


def _count_template(document: Document, old: Document | None) -> None:
    """The old way to count a DaemonSet's templates lives on as an annotation."""
    key = TEMPLATE_GENERATION
    before = (((old or document).get("metadata") or {}).get("annotations") or {}).get(key, "1")
    is_changed = old is not None and ensure_spec(document).get("template") != spec_of(old).get("template")
    count = int(before) + is_changed if old is not None else max(int(before), 1)
    count = count if count < 2**63 else -(2**63)  # as an int64 in Go; the validation refuses it
    document["metadata"].setdefault("annotations", {})[key] = str(count)


def _assign_job(document: Document) -> None:
    spec, metadata = ensure_spec(document), document["metadata"]
    if spec.get("manualSelector"):
        return
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    labels = spec.setdefault("template", {}).setdefault("metadata", {}).setdefault("labels", {})
    for prefix in ("batch.kubernetes.io/", ""):
        labels.setdefault(f"{prefix}controller-uid", uid)
        labels.setdefault(f"{prefix}job-name", name)
    selector = spec.get("selector") or {}
    matched = {"batch.kubernetes.io/controller-uid": uid, **(selector.get("matchLabels") or {})}
    spec["selector"] = {"matchLabels": dict(sorted(matched.items())), **without(selector, ("matchLabels",))}
