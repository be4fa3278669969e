"""Which permissions of an operator of one namespace can be kept to it: those for resources that are known to live in namespaces."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from ctrlruntime.api.object import kind_of
from ctrlruntime.data import open_data
from ctrlruntime.markers import RBACRule
from ctrlruntime.project.package import Package
from ctrlruntime.project.settings import Settings

__all__ = ["kept_to"]


def kept_to(settings: Settings, package: Package) -> Iterator[RBACRule]:
    """Yield what `@ctrl.rbac` says in the package, in the project's namespace where it names none and the resource has one.

    What is not known (kinds of others that the settings do not list, `*`, URLs) stays the whole cluster's, where it works.
    """
    known = dict(_built_in())
    known.update({(each.group, each.plural): each.namespaced for each in settings.resources})
    known.update({(info.group, info.plural): info.scope != "Cluster" for info in map(kind_of, package.kinds)})
    for rule in package.rules:
        if rule.namespace or not rule.resources:
            yield rule
            continue
        for resource in rule.resources:
            plural = resource.partition("/")[0]
            # "core" is how controller-gen spells the core group.
            has_one = all(
                known.get(("" if group == "core" else group, plural), False) for group in rule.groups or ("",)
            )
            namespace = settings.namespace if has_one else ""
            yield replace(rule, resources=(resource,), namespace=namespace)


@cache
def _built_in() -> Mapping[tuple[str, str], bool]:
    """Group and plural of each built-in resource, with whether it lives in namespaces."""
    recorded: Any = json.loads(gzip.decompress(open_data("kubernetes-1.36/discovery.json.gz")))["aggregated"]
    return {
        (group["metadata"].get("name", ""), each["resource"]): each["scope"] == "Namespaced"
        for path in ("/api", "/apis")
        for group in recorded[path]["items"]
        for version in group["versions"]
        for each in version["resources"]
    }
