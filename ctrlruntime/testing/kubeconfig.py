"""The user's own kubeconfig, merged into one document without relative paths."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ctrlruntime.errors import ConfigError

__all__ = ["load_default", "to_text"]

_FILES = (
    ("clusters", "cluster", ("certificate-authority",)),
    ("users", "user", ("client-certificate", "client-key", "tokenFile")),
)


def load_default(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the files in ``KUBECONFIG``, else ``~/.kube/config``, as one document; the first entry of a name counts.

    Relative paths become absolute.

    Raises: ConfigError if the file does not exist, or one cannot be read.
    """
    given = environ.get("KUBECONFIG", "")
    paths = [Path(p) for p in given.split(os.pathsep) if p] or [Path.home() / ".kube" / "config"]
    merged: dict[str, Any] = {"apiVersion": "v1", "kind": "Config"}
    found = [_read(path) for path in paths if path.exists()]
    if not found:
        raise ConfigError(
            f"USE_EXISTING_CLUSTER is set, but no kubeconfig exists at {', '.join(map(str, paths))}; "
            "set KUBECONFIG to the file of the cluster to test on"
        )
    for config in found:
        if config.get("current-context"):
            merged.setdefault("current-context", config["current-context"])
        for section in ("clusters", "users", "contexts"):
            present = cast("list[dict[str, Any]]", merged.setdefault(section, []))
            names = {entry["name"] for entry in present}
            present.extend(entry for entry in config.get(section) or [] if entry["name"] not in names)
    return merged


def to_text(config: Mapping[str, Any]) -> str:
    """Return the document as YAML."""
    import yaml

    return yaml.safe_dump(dict(config), sort_keys=False)


def _read(path: Path) -> dict[str, Any]:
    import yaml

    from ctrlruntime.api.yaml_nodes import load

    try:
        config = load(path.read_text()) or {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot read the kubeconfig {path}: {error}") from error
    if not isinstance(config, dict):
        raise ConfigError(f"the kubeconfig {path} holds no mapping")
    tree = cast("dict[str, Any]", config)
    for section, inner, fields in _FILES:
        for entry in tree.get(section) or []:
            values = cast("dict[str, Any]", entry.get(inner) or {})
            for field in fields:
                if values.get(field):
                    values[field] = str(path.parent / values[field])
    return tree
