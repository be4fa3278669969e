"""The optional checks: `ctrl bundle validate --select-optional name=NAME`, or `suite=SUITE`, runs them.

| module | noun |
|---|---|
| `hub`, `icon` | fields that OperatorHub shows: `operatorhubv2` |
| `capabilities`, `categories` | the annotations `capabilities` and `categories` |
| `removed`, `removals` | APIs that Kubernetes no longer serves: `alpha-deprecated-apis` |
| `practices` | `good-practices` |
| `multiarch`, `platforms`, `images` | labels, images and placement by platform |
| `objects` | objects that disturb a cluster: `object` |
| `package_manifest` | channels in the old format |
| `operatorhub` | deprecated: several of these in one |
| `rules`, `suite` | RBAC rules with their places; the shared constants |

The checks of `removed` are in `operatorhubv2` too: if two validators yield the same finding, it is reported once.
"""

from __future__ import annotations

from typing import Final

from ctrlruntime.olm.validation.optional import (
    capabilities,
    categories,
    hub,
    multiarch,
    objects,
    operatorhub,
    package_manifest,
    practices,
    removed,
)
from ctrlruntime.olm.validation.validator import Validator

__all__ = ["VALIDATORS"]

VALIDATORS: Final[tuple[Validator, ...]] = (
    hub.VALIDATOR,
    capabilities.VALIDATOR,
    categories.validator(),
    removed.VALIDATOR,
    practices.VALIDATOR,
    multiarch.VALIDATOR,
    objects.VALIDATOR,
    package_manifest.VALIDATOR,
    operatorhub.validator(),
)
