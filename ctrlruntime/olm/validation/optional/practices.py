"""Good practices: the operator requests resources, describes its kinds, and leaves CRDs to OLM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlruntime.olm import semver
from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.bundle import CHANNELS, DEFAULT_CHANNEL, Bundle, BundleObject
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.release import package_of
from ctrlruntime.olm.validation.optional.images import DEPLOYMENTS, deployments
from ctrlruntime.olm.validation.optional.rules import csv_rules
from ctrlruntime.olm.validation.optional.suite import FAILED, OPERATOR_FRAMEWORK
from ctrlruntime.olm.validation.validator import Subject, Validator, about

__all__ = ["VALIDATOR"]

_NAME: Final = "good-practices"
_CHANNELS: Final = ("candidate", "fast", "stable")
_REQUESTED: Final = ("cpu", "memory")


def _check(code: str, summary: str, level: Level = Level.WARNING) -> Check:
    return Check(code=code, level=level, type=FAILED, suite=_NAME, summary=summary)


_DEPLOYMENT: Final = _check("practice-deployment-missing", "the ClusterServiceVersion has no Deployment", Level.ERROR)
_REQUESTS: Final = _check("practice-requests-missing", "a container requests no CPU or no memory")
_DESCRIPTION: Final = _check("practice-crd-description-missing", "an owned or required kind has no description")
_CHANNEL: Final = _check("practice-channel-name", "the name of a channel does not start with candidate, fast or stable")
_DEFINITIONS: Final = _check("practice-crd-permission", "the operator may create CustomResourceDefinitions")
_VERSIONED: Final = _check("practice-csv-name", "the ClusterServiceVersion's name is not NAME.vMAJOR.MINOR.PATCH")


def _run(subject: Subject) -> Iterator[Finding]:
    csv, found = subject.csv, subject.csv_object
    if csv is None:
        return
    yield from _deployments(csv, found)
    yield from _descriptions(csv, found)
    yield from _channels(subject.bundle)
    yield from _permissions(subject)
    if not _names_version(csv):
        text = f"{csv.metadata.name!r} has no version. Name it like kettle.v1.2.0"
        yield about(_VERSIONED, found, text, "metadata.name")


def _names_version(csv: ClusterServiceVersion) -> bool:
    """Tell whether a name is PACKAGE.vVERSION, or the required name of a release. Another check compares the version."""
    name, release = csv.metadata.name, csv.spec.release
    package = package_of(name)
    version = name.removeprefix(package)
    if release and version == f"-v{csv.spec.version}-{release}":
        return True
    return bool(package) and version.startswith(".v") and semver.parse(version.removeprefix(".v")) is not None


def _deployments(csv: ClusterServiceVersion, found: BundleObject | None) -> Iterator[Finding]:
    made = deployments(csv)
    if not made:
        yield about(
            _DEPLOYMENT, found, "has no Deployment, so OLM would install nothing that runs. Add one", DEPLOYMENTS
        )
    for index, deployment in enumerate(made):
        for number, container in enumerate(deployment.spec.template.spec.containers):
            lacking = [name for name in _REQUESTED if name not in container.resources.requests]
            if lacking:
                text = f"container {container.name} requests no {' and no '.join(lacking)}, so a quota can reject its pods. Set requests"
                path = f"{DEPLOYMENTS}[{index}].spec.template.spec.containers[{number}].resources.requests"
                yield about(_REQUESTS, found, text, path)


def _descriptions(csv: ClusterServiceVersion, found: BundleObject | None) -> Iterator[Finding]:
    definitions = csv.spec.customresourcedefinitions
    for name, descriptions in (("owned", definitions.owned), ("required", definitions.required)):
        for index, each in enumerate(descriptions):
            if not each.description:
                path = f"spec.customresourcedefinitions.{name}[{index}].description"
                text = f"is missing. Describe {each.kind}; for an owned kind, in the docstring of its class"
                yield about(_DESCRIPTION, found, text, path)


def _channels(bundle: Bundle) -> Iterator[Finding]:
    for name in dict.fromkeys((*bundle.channels, bundle.default_channel)):
        if name and not name.startswith(_CHANNELS):
            text = f"the name of the channel {name} does not show its maturity. Start it with {' or '.join(_CHANNELS)}"
            path = f"annotations.{CHANNELS if name in bundle.channels else DEFAULT_CHANNEL}"
            yield Finding(check=_CHANNEL, text=text, file=bundle.annotations_file, path=path)


def _permissions(subject: Subject) -> Iterator[Finding]:
    for each in csv_rules(subject):
        if each.covers("apiextensions.k8s.io", "customresourcedefinitions", ("create", "patch")):
            text = "OLM installs and upgrades CRDs. Remove create and patch, and add the CRDs to the bundle"
            yield about(_DEFINITIONS, each.found, text, each.path)


VALIDATOR: Final = Validator(
    name=_NAME,
    suite=OPERATOR_FRAMEWORK,
    summary="the operator requests resources, describes its kinds, and uses the usual names for channels and versions",
    checks=(_DEPLOYMENT, _REQUESTS, _DESCRIPTION, _CHANNEL, _DEFINITIONS, _VERSIONED),
    run=_run,
)
