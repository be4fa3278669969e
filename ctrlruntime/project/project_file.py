"""A kubebuilder PROJECT file (version 3) as the table `[tool.ctrlruntime]` would say it.

Names of the file on the left are kubebuilder's: `domain`, `projectName`, `multigroup`, `namespaced`, `resources`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ctrlruntime.api.kind import guess_plural
from ctrlruntime.api.yaml_nodes import load
from ctrlruntime.errors import ConfigError

__all__ = ["PROJECT", "table_of"]

PROJECT: Final = "PROJECT"


def table_of(text: str, where: str) -> dict[str, Any]:
    """Return the table for the text of a PROJECT file. `where` is its path, for messages. Raises: ConfigError, of one line."""
    import yaml

    try:
        tree = load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{where} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(tree, Mapping) or str(tree.get("version")) != "3":
        raise ConfigError(f"{where} is not a PROJECT file of version 3. Create a project with `ctrl init`")
    name = str(tree.get("projectName") or "")
    table: dict[str, Any] = {
        "project-name": name,
        "package": name.replace("-", "_"),
        "domain": str(tree.get("domain") or ""),
        "namespaced": bool(tree.get("namespaced")),
        "multigroup": bool(tree.get("multigroup")),
        # kubebuilder's tree has the policies and leaves them out of config/default.
        "features": {"network-policy": False},
        "resources": [],
    }
    resources = tree.get("resources") or []
    if not isinstance(resources, Sequence):
        raise ConfigError(f"{where}: resources must be a list")
    for place, entry in enumerate(resources):
        if not isinstance(entry, Mapping) or not all(entry.get(key) for key in ("version", "kind")):
            raise ConfigError(f"{where}: resources[{place}] requires a version and a kind")
        for key in ("api", "webhooks"):
            if not isinstance(entry.get(key) or {}, Mapping):
                raise ConfigError(f"{where}: resources[{place}].{key} must be a map")
        if not isinstance((entry.get("webhooks") or {}).get("spoke") or [], list):
            raise ConfigError(f"{where}: resources[{place}].webhooks.spoke must be a list")
        table["resources"].append(_resource(entry))
    return table


def _resource(entry: Mapping[str, Any]) -> dict[str, Any]:
    api, webhooks = (entry.get(key) or {} for key in ("api", "webhooks"))
    kind = str(entry["kind"])
    is_external = bool(entry.get("core") or entry.get("external"))
    return {
        "group": _group(entry),
        "version": str(entry["version"]),
        "kind": kind,
        "plural": str(entry.get("plural") or guess_plural(kind)),
        # The file tells the scope of the project's own kinds alone, and leaves a false out.
        "namespaced": is_external or not api or bool(api.get("namespaced")),
        "external": is_external,
        "controller": bool(entry.get("controller") or entry.get("controllers")),
        "defaulting": bool(webhooks.get("defaulting")),
        "validation": bool(webhooks.get("validation")),
        "spokes": [str(each) for each in webhooks.get("spoke") or ()],
    }


def _group(entry: Mapping[str, Any]) -> str:
    group, domain = str(entry.get("group") or ""), str(entry.get("domain") or "")
    if entry.get("core") and group == "core":
        return ""
    return ".".join(part for part in (group, domain) if part)
