"""One check and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ctrlruntime.project.deployment.access import Account
from ctrlruntime.project.deployment.objects import Document, Named, manager_deployment
from ctrlruntime.project.settings import Settings

__all__ = ["Check", "Status", "Subject", "failed", "fine", "warned"]

Status: TypeAlias = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was checked, the result, and what to do about it: `text` is a clause, `advice` a sentence without a full stop, or empty."""

    name: str
    status: Status
    text: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.status:<5}{self.name}: {self.text}{f'. {self.advice}' if self.advice else ''}"

    def to_json(self) -> dict[str, str]:
        return {"name": self.name, "status": self.status, "text": self.text, "advice": self.advice}


def fine(name: str, text: str) -> Check:
    return Check(name, "ok", text)


def warned(name: str, text: str, advice: str) -> Check:
    return Check(name, "warn", text, advice)


def failed(name: str, text: str, advice: str) -> Check:
    return Check(name, "fail", text, advice)


@dataclass(frozen=True, slots=True)
class Subject:
    """The project that is checked, and the objects of its config/default (none if it does not render)."""

    folder: Path
    settings: Settings
    documents: tuple[Document, ...] = ()

    @property
    def deployment(self) -> Document | None:
        """The operator's Deployment."""
        return manager_deployment(self.documents)

    @property
    def container(self) -> Mapping[str, Any]:
        """The operator's container in it; empty without one."""
        if self.deployment is None:
            return {}
        containers: list[dict[str, Any]] = self.deployment["spec"]["template"]["spec"].get("containers") or [{}]
        return next((each for each in containers if each.get("name") == "manager"), containers[0])

    @property
    def account(self) -> Account | None:
        """The ServiceAccount the operator runs as."""
        if self.deployment is None:
            return None
        named = Named.of(self.deployment)
        name = self.deployment["spec"]["template"]["spec"].get("serviceAccountName") or "default"
        return Account(named.namespace or self.settings.namespace, str(name))
