"""The checks that run when they are asked for: `ctrl bundle validate --select-optional name=NAME`, or `suite=SUITE`.

| module | noun |
|---|---|
| `hub`, `icon` | what OperatorHub shows: `operatorhubv2` |
| `capabilities`, `categories` | the two annotations by which people choose |
| `removed`, `removals` | APIs that Kubernetes no longer serves: `alpha-deprecated-apis` |
| `practices` | `good-practices` |
| `multiarch`, `platforms`, `images` | labels, images and placement by platform |
| `objects` | what disturbs a cluster: `object` |
| `package_manifest` | channels in the old format |
| `operatorhub` | deprecated: several of these in one |
| `rules`, `suite` | rules of RBAC with their places; the words that several share |

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
