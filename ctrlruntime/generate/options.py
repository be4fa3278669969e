"""Options of generated CRDs, and the form of problems, with class and field."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ctrlruntime.errors import GenerateError

__all__ = ["ConversionWebhook", "Document", "GenerateWarning", "Options", "Place", "Warn", "warn"]

Document: TypeAlias = dict[str, Any]
"""A JSON document."""
Warn: TypeAlias = Callable[[str], None]
"""Receives the text of a warning."""


class GenerateWarning(UserWarning):
    """A manifest was generated, but the server or the user will have a problem with it."""


def warn(text: str) -> None:
    """Issue a Python warning."""
    warnings.warn(text, GenerateWarning, stacklevel=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of generated CRDs."""

    max_description: int | None = None
    """The maximum bytes of a description, cut after a sentence or word. 0 omits all descriptions, None keeps them whole."""
    embedded_metadata: bool = True
    """Whether an ObjectMeta inside the object has its five fields (name, namespace, labels, annotations, finalizers).

    Without them the server drops its content.
    """
    allow_floats: bool = False
    """Whether float fields are allowed; not all clients and languages keep their value."""
    sort_enums: bool = False
    """Whether the values of enums are sorted; else they have the order of the class."""
    generated_by: str = ""
    """The value of the annotation `ctrlruntime.dev/generated-by`; left out if empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionWebhook:
    """The address of the webhook that converts between versions: a Service, or a `url`."""

    service_name: str = "webhook-service"
    service_namespace: str = "system"
    path: str = "/convert"
    port: int | None = None
    url: str = ""
    ca_bundle: str = ""
    """PEM certificates in base64, as in the API."""
    review_versions: tuple[str, ...] = ("v1",)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the user's code: a class, and the path of a field below it."""

    cls: type[Any]
    path: str = ""

    def below(self, step: str) -> Place:
        return replace(self, path=self.path + step)

    def error(self, what: str) -> GenerateError:
        return GenerateError(f"{self}: {what}")

    def __str__(self) -> str:
        return f"{self.cls.__module__}.{self.cls.__qualname__}{self.path}"
