"""Whether the CRDs in the cluster are those of the classes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.client.interfaces import Client
from ctrlruntime.errors import CtrlError
from ctrlruntime.project.compatibility import Code, Finding, Level, compare
from ctrlruntime.project.deployment.pruning import CustomResourceDefinition
from ctrlruntime.project.doctor.check import Check, Subject, failed, fine, warned

__all__ = ["definition_checks"]

_NOT_OURS: Final = frozenset((Code.CONVERSION_CHANGED, Code.DOCUMENTATION_CHANGED))
"""The address of the conversion webhook depends on the deployment, and texts do not affect the operator."""


async def definition_checks(client: Client, subject: Subject, *, is_deployed: bool) -> AsyncIterator[Check]:
    """Yield one check for each CRD of the package."""
    from ctrlruntime.project.config import made_by

    try:
        definitions = made_by(subject.folder, subject.settings, warn=lambda _text: None).definitions
    except CtrlError:  # the check of the manifests tells
        return
    for ours in definitions:
        name = str(ours["metadata"]["name"])
        live = await client.api_reader.get_or_none(CustomResourceDefinition, NamespacedName("", name))
        if live is None:
            say = failed if is_deployed else warned
            yield say(f"crd {name}", "not installed", "Run `ctrl install` or `ctrl deploy`")
        else:
            yield _compared(f"crd {name}", live.to_dict(), ours)


def _compared(name: str, live: Mapping[str, Any], ours: Mapping[str, Any]) -> Check:
    status: dict[str, Any] = live.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition["type"] in {"Established", "NamesAccepted"} and condition["status"] != "True":
            text = (
                f"{condition['type']} is {condition['status']}: {condition.get('message') or condition.get('reason')}"
            )
            return failed(name, text, f"See kubectl describe {name}")
    findings = [each for each in compare(live, ours) if each.code not in _NOT_OURS]
    breaking = [each for each in findings if each.level is Level.BREAKING]
    if breaking:
        return failed(
            name, f"the class is incompatible with the installed CRD: {_told(breaking)}", "Compare with `ctrl crd diff`"
        )
    if findings:
        return warned(name, f"older than the class: {_told(findings)}", "Run `ctrl install` or `ctrl deploy`")
    stored = status.get("storedVersions") or []
    if len(stored) > 1:
        return warned(
            name, f"objects may be stored as {', '.join(stored)}", f"Run `ctrl storage migrate {_plural(live)}`"
        )
    return fine(name, f"same as the class, stored as {', '.join(stored)}")


def _told(findings: list[Finding]) -> str:
    first = findings[0]
    where = " ".join(part for part in (first.version, first.path) if part)
    more = f", and {len(findings) - 1} more" if len(findings) > 1 else ""
    return f"{first.code.value}{f' at {where}' if where else ''} ({first.rule.effect}){more}"


def _plural(definition: Mapping[str, Any]) -> str:
    return str(definition["spec"]["names"]["plural"])
