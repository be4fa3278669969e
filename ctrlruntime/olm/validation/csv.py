"""The ClusterServiceVersion: names, versions, install modes, annotations, and what people read of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.release import SKIP_RANGE
from ctrlruntime.olm.semver import parse, parse_range
from ctrlruntime.olm.validation.validator import Subject, Validator, about

__all__ = ["VALIDATOR"]

_LONGEST: Final = 63
"""Letters of a name: OLM writes it into a label."""
_CASED: Final = ("olm.operatorGroup", "olm.operatorNamespace", "olm.targetNamespaces", "olm.providedAPIs", SKIP_RANGE)
_BY_LOWER: Final = {name.lower(): name for name in _CASED}
_LISTS: Final = (
    "operators.operatorframework.io/internal-objects",
    "operators.openshift.io/infrastructure-features",
    "operators.openshift.io/valid-subscription",
)
_INITIALIZATION: Final = "operatorframework.io/initialization-resource"

_error = partial(Check, level=Level.ERROR, type="CSVFileNotValid")
_warning = partial(Check, level=Level.WARNING, type="CSVFileNotValid")
_NAME: Final = _error(code="csv-name", summary="metadata.name is not a DNS subdomain of 63 letters at most")
_REPLACES: Final = _error(code="csv-replaces", summary="spec.replaces is not a DNS subdomain of 63 letters at most")
_ITSELF: Final = _error(code="csv-replaces-itself", summary="the version replaces itself")
_VERSION: Final = _error(code="csv-version", summary="spec.version is not a semantic version")
_KUBE: Final = _error(code="csv-min-kube-version", summary="spec.minKubeVersion is not a semantic version")
_NO_KUBE: Final = _warning(code="csv-no-min-kube-version", summary="spec.minKubeVersion is missing")
_SKIPS: Final = _error(code="csv-skip-range", summary="olm.skipRange is not a range of versions")
_NO_MODES: Final = _error(code="csv-no-install-modes", summary="spec.installModes is missing")
_MODE_TWICE: Final = _error(code="csv-install-mode-twice", summary="an install mode is given twice")
_NO_MODE: Final = _error(code="csv-install-mode-none", summary="no install mode is supported")
_CASE: Final = _error(
    code="csv-annotation-case", type="ValidationFailed", summary="an annotation of OLM is written in another case"
)
_PROPERTIES: Final = _warning(
    code="csv-olm-properties",
    type="PropertiesAnnotationUsed",
    summary="properties are an annotation and not a file of `metadata`",
)
_JSON: Final = _warning(
    code="csv-annotation-json", type="ParseError", summary="an annotation that consoles read as JSON is not JSON"
)
_NO_ANNOTATIONS: Final = _warning(code="csv-no-annotations", summary="the ClusterServiceVersion has no annotations")
_missing = partial(_warning, type="FieldNotFound")
_NO_CAPABILITIES: Final = _missing(code="csv-no-capabilities", summary="the annotation capabilities is missing")
_NO_VERSION: Final = _missing(code="csv-no-version", summary="spec.version is missing")
_NO_DESCRIPTION: Final = _missing(code="csv-no-description", summary="spec.description is missing")
_NO_KEYWORDS: Final = _missing(code="csv-no-keywords", summary="spec.keywords is missing")
_NO_MAINTAINERS: Final = _missing(code="csv-no-maintainers", summary="spec.maintainers is missing")
_NO_PROVIDER: Final = _missing(code="csv-no-provider", summary="spec.provider is missing")

_WANTED: Final = {
    "version": (_NO_VERSION, "OLM takes it for 0.0.0; `ctrl bundle --version` writes it"),
    "description": (_NO_DESCRIPTION, "catalogs show what the operator does"),
    "keywords": (_NO_KEYWORDS, "people find the operator by them"),
    "maintainers": (_NO_MAINTAINERS, "people want to know whom to ask"),
    "provider": (_NO_PROVIDER, "catalogs show who is behind the operator"),
    "minKubeVersion": (
        _NO_KUBE,
        "OLM installs on every Kubernetes without it; `ctrl generate kustomize-manifests --min-kube-version` sets it",
    ),
}


def _run(subject: Subject) -> Iterator[Finding]:
    csv, found = subject.csv, subject.csv_object
    if csv is None or found is None:
        return
    for check, path, text in (*_names(csv), *_versions(csv), *_modes(csv), *_annotations(csv)):
        yield about(check, found, text, path)
    for name, (check, why) in _WANTED.items():
        if not found.spec.get(name):
            yield about(check, found, f"is missing: {why}", f"spec.{name}")


def _names(csv: ClusterServiceVersion) -> Iterator[tuple[Check, str, str]]:
    from ctrlruntime.apiserver.registry.values import subdomain_problems

    names = ((_NAME, "metadata.name", csv.metadata.name), (_REPLACES, "spec.replaces", csv.spec.replaces))
    for check, path, name in names:
        if (name or check is _NAME) and (subdomain_problems(name) or len(name) > _LONGEST):
            yield (
                check,
                path,
                f"{name!r} cannot be a name; write lower-case letters, digits, - and ., {_LONGEST} at most",
            )
    if csv.spec.replaces and csv.spec.replaces == csv.metadata.name:
        yield _ITSELF, "spec.replaces", f"{csv.spec.replaces} is this version; name the one before, or take it out"


def _versions(csv: ClusterServiceVersion) -> Iterator[tuple[Check, str, str]]:
    advice = "write three numbers with dots and no v"
    if csv.spec.version and parse(csv.spec.version) is None:
        yield _VERSION, "spec.version", f"{csv.spec.version!r} is not a semantic version; {advice}: 1.2.3"
    if csv.spec.min_kube_version and parse(csv.spec.min_kube_version) is None:
        yield _KUBE, "spec.minKubeVersion", f"{csv.spec.min_kube_version!r} is not a semantic version; {advice}: 1.30.0"
    skipped = csv.metadata.annotations.get(SKIP_RANGE)
    if skipped is not None and parse_range(skipped) is None:
        text = f"{skipped!r} is not a range of versions; write it like >=1.0.0 <1.2.0"
        yield _SKIPS, f"metadata.annotations.{SKIP_RANGE}", text


def _modes(csv: ClusterServiceVersion) -> Iterator[tuple[Check, str, str]]:
    modes, path = csv.spec.install_modes, "spec.installModes"
    if not modes:
        yield _NO_MODES, path, "is missing, and OLM installs nowhere; name one mode at least, as AllNamespaces"
        return
    types = [mode.type for mode in modes]
    for name in sorted({name for name in types if types.count(name) > 1}):
        yield _MODE_TWICE, path, f"{name} is given {types.count(name)} times; keep one"
    if not any(mode.supported for mode in modes):
        yield _NO_MODE, path, "no mode is supported, and OLM installs nowhere; set `supported` of one"


def _annotations(csv: ClusterServiceVersion) -> Iterator[tuple[Check, str, str]]:
    annotations = csv.metadata.annotations
    if not annotations:
        yield _NO_ANNOTATIONS, "metadata.annotations", "are missing: catalogs read capabilities and examples there"
        return
    for name in annotations:
        right = _BY_LOWER.get(name.lower(), name)
        if right != name:
            yield _CASE, f"metadata.annotations.{name}", f"is not what OLM reads; write {right}"
    if "olm.properties" in annotations:
        text = "write the properties into metadata/properties.yaml, where catalogs look for them"
        yield _PROPERTIES, "metadata.annotations.olm.properties", text
    if not annotations.get("capabilities"):
        text = "is missing: catalogs show it; the first level is Basic Install"
        yield _NO_CAPABILITIES, "metadata.annotations.capabilities", text
    yield from _read_by_consoles(annotations)


def _read_by_consoles(annotations: Mapping[str, str]) -> Iterator[tuple[Check, str, str]]:
    for name, kind, word in (*((name, list, "list") for name in _LISTS), (_INITIALIZATION, dict, "object")):
        if name in annotations and not isinstance(_json(annotations[name]), kind):
            yield _JSON, f"metadata.annotations.{name}", f"is not JSON {word}; consoles do not show it"


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


VALIDATOR: Final = Validator(
    name="csv",
    summary="The ClusterServiceVersion: names, versions, modes, annotations",
    checks=(
        *(
            _NAME,
            _REPLACES,
            _ITSELF,
            _VERSION,
            _KUBE,
            _SKIPS,
            _NO_MODES,
            _MODE_TWICE,
            _NO_MODE,
            _CASE,
            _PROPERTIES,
            _JSON,
        ),
        *(_NO_ANNOTATIONS, _NO_CAPABILITIES, *(check for check, _ in _WANTED.values())),
    ),
    run=_run,
)
