"""What the user can choose about generated definitions, and how a problem is told: with the class and field it stands at."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ctrlruntime.errors import GenerateError

__all__ = ["ConversionWebhook", "Document", "GenerateWarning", "Options", "Place", "Warn", "warn"]

Document: TypeAlias = dict[str, Any]
"""A tree of JSON values."""
Warn: TypeAlias = Callable[[str], None]
"""What takes the text of a warning."""


class GenerateWarning(UserWarning):
    """A manifest was made, and the server or the user will not like it."""


def warn(text: str) -> None:
    """Tell a warning the way Python does."""
    warnings.warn(text, GenerateWarning, stacklevel=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How definitions are written."""

    max_description: int | None = None
    """The most bytes of a description; it is cut after a sentence or word. 0 drops all, None cuts none."""
    embedded_metadata: bool = True
    """Whether an ObjectMeta inside the object has its five fields (name, namespace, labels, annotations, finalizers): without them the
    server drops all it holds.
    """
    allow_floats: bool = False
    """Whether float fields are let through; they do not survive all clients and languages unchanged."""
    sort_enums: bool = False
    """Whether the values of enums are sorted; else they stand as declared."""
    generated_by: str = ""
    """The value of the annotation `ctrlruntime.dev/generated-by`; it is left out when empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionWebhook:
    """Where the server finds the webhook that converts between versions: a Service, or a `url`."""

    service_name: str = "webhook-service"
    service_namespace: str = "system"
    path: str = "/convert"
    port: int | None = None
    url: str = ""
    ca_bundle: str = ""
    """PEM certificates in base64, as the API has them."""
    review_versions: tuple[str, ...] = ("v1",)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the user's code something stands: a class, and the path of a field below it."""

    cls: type[Any]
    path: str = ""

    def below(self, step: str) -> Place:
        return replace(self, path=self.path + step)

    def error(self, what: str) -> GenerateError:
        return GenerateError(f"{self}: {what}")

    def __str__(self) -> str:
        return f"{self.cls.__module__}.{self.cls.__qualname__}{self.path}"
