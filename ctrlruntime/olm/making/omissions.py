"""The objects of another tool that a bundle leaves out, because the Operator Lifecycle Manager provides their function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ctrlruntime.generate.options import Document
from ctrlruntime.olm.csv.deployments import containers_of
from ctrlruntime.olm.csv.objects import gvk_of, is_a, name_of, pod_of
from ctrlruntime.olm.trees import listed, mapping, maps

__all__ = ["omitted"]

_CERT_MANAGER: Final = "cert-manager.io"
_WATCHED: Final = "WATCH_NAMESPACE"
"""The variable that follows the OperatorGroup, whatever was given; it has nothing to do with certificates."""


def omitted(objects: Sequence[Document], csv: Document) -> str:
    """Return a line with the certificates and volumes that are left out, and the changed arguments; empty without any."""
    gone = [f"{gvk_of(each).kind}/{name_of(each)}" for each in objects if gvk_of(each).group.endswith(_CERT_MANAGER)]
    install = mapping(mapping(mapping(csv["spec"]).get("install")).get("spec"))
    after = {str(each.get("name")): each for each in maps(install.get("deployments"))}
    changed: list[str] = []
    for each in objects:
        if is_a(each, "apps", "Deployment") and name_of(each) in after:
            gone += _volumes_gone(each, after[name_of(each)])
            changed += _words_changed(each, after[name_of(each)])
    parts = [f"Left out: {', '.join(gone)}"] * bool(gone) + [f"Changed: {', '.join(changed)}"] * bool(changed)
    why = "the Operator Lifecycle Manager creates the certificate of the webhooks, so cert-manager is not needed"
    return f"{why}. {'. '.join(parts)}" if parts else ""


def _volumes_gone(before: Document, after: Document) -> Iterator[str]:
    kept = {each.get("name") for each in maps(pod_of(after).get("volumes"))}
    for volume in maps(pod_of(before).get("volumes")):
        if volume.get("name") not in kept:
            yield f"the volume {volume.get('name')} of Deployment/{name_of(before)}"


def _words_changed(before: Document, after: Document) -> Iterator[str]:
    """Yield the arguments that are others now, and the variables for the certificate."""
    for old, new in zip(containers_of(before), containers_of(after), strict=False):
        for word in ("command", "args"):
            pairs = zip(listed(old.get(word)), listed(new.get(word)), strict=False)
            yield from (f"{first} is now {second}" for first, second in pairs if first != second)
        kept = _variables(new)
        yield from (f"the variable {name}" for name, value in _variables(old).items() if kept.get(name) != value)


def _variables(container: Document) -> Mapping[str, Any]:
    found = {str(each.get("name")): each["value"] for each in maps(container.get("env")) if "value" in each}
    found.pop(_WATCHED, None)
    return found
