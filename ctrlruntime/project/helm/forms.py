"""The objects of a project in every case its chart has a switch for: `config/default` rendered once for each.

So a chart knows what a switch adds or takes away from the same source as the kustomize tree, and never by a rule of its own.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.options import Document, Warn
from ctrlruntime.project.config import DERIVED_MARK, derived_files, first_files
from ctrlruntime.project.config.refresh import CONFIG, made_by
from ctrlruntime.project.generated import marked
from ctrlruntime.project.helm.conditions import Case, Switches
from ctrlruntime.project.kustomize import render
from ctrlruntime.project.manifests import Manifests
from ctrlruntime.project.settings import Settings

__all__ = ["CERTIFICATES", "METRICS", "NAMESPACED", "WEBHOOKS", "Forms", "Key", "forms_of", "key_of"]

METRICS: Final = "metrics"
CERTIFICATES: Final = "certManager"
WEBHOOKS: Final = "webhook"
NAMESPACED: Final = "namespaced"

_VALUES: Final = {
    METRICS: ".Values.metrics.enabled",
    WEBHOOKS: ".Values.webhook.enabled",
    CERTIFICATES: ".Values.certManager.enabled",
    NAMESPACED: ".Values.rbac.namespaced",
}

Key: TypeAlias = tuple[str, str, str, str]
"""API version, kind, namespace and name of an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """The objects of a project, by key, in every case in which they are there."""

    switches: Switches
    objects: Mapping[Key, Mapping[Case, Document]]
    optional: Mapping[Key, str]
    """Objects of features that are separate files, with the value that switches them."""

    default: Case
    """The case the settings choose."""

    has_webhooks: bool
    definitions: frozenset[tuple[str, str]]
    """Group and kind of the project's own kinds."""


def key_of(each: Mapping[str, Any]) -> Key:
    metadata = each["metadata"]
    return each["apiVersion"], each["kind"], metadata.get("namespace", ""), metadata["name"]


def forms_of(folder: Path, settings: Settings, *, warn: Warn) -> Forms:
    """Return the objects of the project in `folder`; its files are read and none is written.

    Raises: GenerateError for a package without manifests, ConfigError for a tree that cannot be rendered.
    """
    made = {settings.namespaced: made_by(folder, settings, warn=warn)}
    other = replace(settings, namespaced=not settings.namespaced)
    made[other.namespaced] = made_by(folder, other, warn=lambda _: None)
    ours = made[settings.namespaced]
    converted = any((each["spec"].get("conversion") or {}).get("webhook") for each in ours.definitions)
    has_webhooks = bool(ours.webhooks) or converted
    names = [METRICS, NAMESPACED]
    if has_webhooks:
        # Without its conversion a kind of several versions cannot be served, so then webhooks are not to be switched off.
        names[1:1] = [CERTIFICATES] if converted else [WEBHOOKS, CERTIFICATES]
    switches = Switches({name: _VALUES[name] for name in names})
    with tempfile.TemporaryDirectory(prefix="ctrlruntime-") as scratch:
        tree = _Tree(folder / CONFIG, Path(scratch), settings, made)
        objects: dict[Key, dict[Case, Document]] = {}
        for case in switches.cases:
            for each in tree.rendered(switches.named(case)):
                objects.setdefault(key_of(each), {})[case] = each
        first = switches.cases[0]
        every = {key for key, cases in objects.items() if first in cases}
        optional = tree.optional(every, switches.named(first))
    chosen = {
        METRICS: settings.features.metrics,
        WEBHOOKS: True,
        CERTIFICATES: settings.features.cert_manager,
        NAMESPACED: settings.namespaced,
    }
    return Forms(
        switches=switches,
        objects=objects,
        optional=optional,
        default=tuple(chosen[name] for name in names),
        has_webhooks=has_webhooks,
        definitions=frozenset((each["spec"]["group"], each["spec"]["names"]["kind"]) for each in ours.definitions),
    )


class _Tree:
    """A copy of a project's `config/`, to be rendered with other settings."""

    def __init__(self, config: Path, scratch: Path, settings: Settings, made: Mapping[bool, Manifests]) -> None:
        self._folder = scratch / CONFIG
        self._settings = settings
        self._made = {namespaced: _without_schemas(each) for namespaced, each in made.items()}
        self._versions = {each["metadata"]["name"]: each["spec"]["versions"] for each in made[True].definitions}
        try:
            if config.is_dir():
                shutil.copytree(config, self._folder)
            for path in marked(self._folder, DERIVED_MARK):
                path.unlink()
        except (OSError, shutil.Error) as error:
            raise ConfigError.unreadable(config, error) from error
        self._own = set(self._folder.rglob("*"))
        for name, text in first_files(settings).items():
            self._write(name, text)

    def rendered(
        self, case: Mapping[str, bool], *, prometheus: bool = True, network_policy: bool = True
    ) -> list[Document]:
        namespaced = case[NAMESPACED]
        features = replace(
            self._settings.features,
            metrics=case[METRICS],
            cert_manager=case.get(CERTIFICATES, False),
            prometheus=prometheus,
            network_policy=network_policy,
        )
        settings = replace(self._settings, features=features, namespaced=namespaced)
        made = self._made[namespaced]
        if not case.get(WEBHOOKS, True):
            made = replace(made, webhooks=[])
        files = derived_files(settings, made)
        for name, text in files.items():
            self._write(name, text)
        return [self._with_schema(each) for each in render(self._folder / "default")]

    def _with_schema(self, each: Mapping[str, Any]) -> Document:
        versions = self._versions.get(each["metadata"]["name"]) if each["kind"] == "CustomResourceDefinition" else None
        return dict(each) if versions is None else {**each, "spec": {**each["spec"], "versions": versions}}

    def optional(self, every: set[Key], case: Mapping[str, bool]) -> dict[Key, str]:
        """Return which of the objects of a case come and go with a feature, each with the value that switches it."""
        found: dict[Key, str] = {}
        for name, value in (
            ("prometheus", ".Values.prometheus.enabled"),
            ("network_policy", ".Values.networkPolicy.enabled"),
        ):
            without = {key_of(each) for each in self.rendered(case, **{name: False})}
            found.update(dict.fromkeys(every - without, value))
        return found

    def _write(self, name: str, text: str) -> None:
        """Write a file, unless the user has an own version."""
        path = self._folder / name
        if path not in self._own:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def _without_schemas(made: Manifests) -> Manifests:
    """No switch changes a schema, and to read and write each one in every case would take most of the time."""
    definitions = [
        {**each, "spec": {key: value for key, value in each["spec"].items() if key != "versions"}}
        for each in made.definitions
    ]
    return replace(made, definitions=definitions)
