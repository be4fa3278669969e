"""The input of the tests: the ClusterServiceVersion of a bundle, its examples, and the CRD and description of each example's kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.api import ClusterServiceVersion, CRDDescription
from ctrlruntime.olm.bundle import Bundle
from ctrlruntime.olm.examples import EXAMPLES, Example, examples_of
from ctrlruntime.olm.release import csv_of
from ctrlruntime.olm.trees import mapping

__all__ = ["Schema", "Specimen"]

Schema: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Specimen:
    """A bundle as input of the tests."""

    bundle: Bundle

    @cached_property
    def csv(self) -> ClusterServiceVersion:
        """Raises: ConfigError without a readable one."""
        found = csv_of(self.bundle)
        if found is None:
            raise ConfigError(
                "the bundle has no readable ClusterServiceVersion. Run `ctrl bundle validate` for details"
            )
        return found

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """Raises: ConfigError if they cannot be read, or if the bundle owns kinds but has no example."""
        found = examples_of(self.csv)
        if not found and self.csv.spec.customresourcedefinitions.owned:
            raise ConfigError(f"the annotation {EXAMPLES[0]} has no object. Add a sample to config/samples")
        return found

    def description(self, example: Example) -> CRDDescription | None:
        """Return the description of an example's kind in the ClusterServiceVersion."""
        gvk = example.gvk
        for each in self.csv.spec.customresourcedefinitions.owned:
            if (each.kind, each.version) == (gvk.kind, gvk.version) and each.name.partition(".")[2] == gvk.group:
                return each
        return None

    def schema(self, example: Example) -> Schema | None:
        """Return the schema of an example's kind in its version; None if no CRD of the bundle has it."""
        gvk = example.gvk
        for each in self.bundle.definitions:
            if (each.spec.get("group"), mapping(each.spec.get("names")).get("kind")) != (gvk.group, gvk.kind):
                continue
            versions: Any = each.spec.get("versions")
            for version in versions if isinstance(versions, list) else ():
                if mapping(version).get("name") == gvk.version:
                    return mapping(mapping(mapping(version).get("schema")).get("openAPIV3Schema"))
        return None
