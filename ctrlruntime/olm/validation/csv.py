"""The ClusterServiceVersion: names, versions, install modes, annotations, and the fields that catalogs show."""

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
"""The maximum characters of a name, which OLM uses as a label value."""
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
_NAME: Final = _error(code="csv-name", summary="metadata.name is not a DNS subdomain of at most 63 characters")
_REPLACES: Final = _error(code="csv-replaces", summary="spec.replaces is not a DNS subdomain of at most 63 characters")
_ITSELF: Final = _error(code="csv-replaces-itself", summary="the version replaces itself")
_VERSION: Final = _error(code="csv-version", summary="spec.version is not a semantic version")
_KUBE: Final = _error(code="csv-min-kube-version", summary="spec.minKubeVersion is not a semantic version")
_NO_KUBE: Final = _warning(code="csv-no-min-kube-version", summary="spec.minKubeVersion is missing")
_SKIPS: Final = _error(code="csv-skip-range", summary="olm.skipRange is not a range of versions")
_NO_MODES: Final = _error(code="csv-no-install-modes", summary="spec.installModes is missing")
_MODE_TWICE: Final = _error(code="csv-install-mode-twice", summary="an install mode is listed twice")
_NO_MODE: Final = _error(code="csv-install-mode-none", summary="no install mode is supported")
_CASE: Final = _error(
    code="csv-annotation-case",
    type="ValidationFailed",
    summary="an annotation of OLM is written with wrong upper or lower case",
)
_PROPERTIES: Final = _warning(
    code="csv-olm-properties",
    type="PropertiesAnnotationUsed",
    summary="properties are in an annotation instead of a file in `metadata`",
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
    "version": (_NO_VERSION, "OLM treats it as 0.0.0. Set it with `ctrl bundle --version`"),
    "description": (_NO_DESCRIPTION, "catalogs show it. Describe what the operator does"),
    "keywords": (_NO_KEYWORDS, "users find the operator by keywords. Add some"),
    "maintainers": (_NO_MAINTAINERS, "users need a contact. Add a name and an email address"),
    "provider": (_NO_PROVIDER, "catalogs show the provider. Set its name"),
    "minKubeVersion": (
        _NO_KUBE,
        "without it, OLM installs on every Kubernetes version. Set it with `ctrl generate kustomize-manifests --min-kube-version`",
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
                f"{name!r} is not a valid name. Use lower-case letters, digits, dots and dashes, at most {_LONGEST} characters",
            )
    if csv.spec.replaces and csv.spec.replaces == csv.metadata.name:
        yield (
            _ITSELF,
            "spec.replaces",
            f"{csv.spec.replaces} is this version. Set the previous version, or remove the field",
        )


def _versions(csv: ClusterServiceVersion) -> Iterator[tuple[Check, str, str]]:
    advice = "Write three numbers with dots and without v, such as"
    if csv.spec.version and parse(csv.spec.version) is None:
        yield _VERSION, "spec.version", f"{csv.spec.version!r} is not a semantic version. {advice} 1.2.3"
    if csv.spec.min_kube_version and parse(csv.spec.min_kube_version) is None:
        yield _KUBE, "spec.minKubeVersion", f"{csv.spec.min_kube_version!r} is not a semantic version. {advice} 1.30.0"
    skipped = csv.metadata.annotations.get(SKIP_RANGE)
    if skipped is not None and parse_range(skipped) is None:
        text = f"{skipped!r} is not a range of versions. Write it like >=1.0.0 <1.2.0"
        yield _SKIPS, f"metadata.annotations.{SKIP_RANGE}", text


def _modes(csv: ClusterServiceVersion) -> Iterator[tuple[Check, str, str]]:
    modes, path = csv.spec.install_modes, "spec.installModes"
    if not modes:
        yield (
            _NO_MODES,
            path,
            "is missing, so OLM cannot install the operator. Add at least one mode, such as AllNamespaces",
        )
        return
    types = [mode.type for mode in modes]
    for name in sorted({name for name in types if types.count(name) > 1}):
        yield _MODE_TWICE, path, f"{name} is listed {types.count(name)} times. Keep one"
    if not any(mode.supported for mode in modes):
        yield _NO_MODE, path, "no mode is supported, so OLM cannot install the operator. Set `supported: true` in one"


def _annotations(csv: ClusterServiceVersion) -> Iterator[tuple[Check, str, str]]:
    annotations = csv.metadata.annotations
    if not annotations:
        yield (
            _NO_ANNOTATIONS,
            "metadata.annotations",
            "are missing, but catalogs read capabilities and examples from them. Add them",
        )
        return
    for name in annotations:
        right = _BY_LOWER.get(name.lower(), name)
        if right != name:
            yield _CASE, f"metadata.annotations.{name}", f"is not read by OLM. Write {right}"
    if "olm.properties" in annotations:
        text = "catalogs read the properties from metadata/properties.yaml. Move them there"
        yield _PROPERTIES, "metadata.annotations.olm.properties", text
    if not annotations.get("capabilities"):
        text = "is missing, but catalogs show it. Set a level, such as Basic Install"
        yield _NO_CAPABILITIES, "metadata.annotations.capabilities", text
    yield from _read_by_consoles(annotations)


def _read_by_consoles(annotations: Mapping[str, str]) -> Iterator[tuple[Check, str, str]]:
    for name, kind, word in (*((name, list, "list") for name in _LISTS), (_INITIALIZATION, dict, "object")):
        if name in annotations and not isinstance(_json(annotations[name]), kind):
            yield _JSON, f"metadata.annotations.{name}", f"is not a JSON {word}, so consoles do not show it. Correct it"


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
