"""The configuration of the scorecard: `Configuration` of scorecard.operatorframework.io/v1alpha3, which is read from files only."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pydantic import Field

from ctrlruntime.api.model import Model
from ctrlruntime.errors import ConfigError, DecodeError
from ctrlruntime.generate.documents import read_one, read_text
from ctrlruntime.olm.bundle import CONFIG_FILE, Bundle

__all__ = ["API_VERSION", "Configuration", "Stage", "Test", "configuration_of", "read_configuration"]

API_VERSION: Final = "scorecard.operatorframework.io/v1alpha3"
_KIND: Final = "Configuration"


class Test(Model):
    """A test: the image and the entrypoint for a cluster, and the labels for selectors."""

    __test__ = False  # pytest takes no class of this name for its own

    image: str
    entrypoint: list[str] = Field(default_factory=list[str])
    labels: dict[str, str] = Field(default_factory=dict[str, str])

    @property
    def name(self) -> str:
        """The name in the entrypoint: `basic-check-spec` of `scorecard-test basic-check-spec`."""
        return self.entrypoint[1] if len(self.entrypoint) > 1 else " ".join(self.entrypoint) or self.image


class Stage(Model):
    """Tests that may run in parallel. Stages run one after another."""

    parallel: bool = False
    tests: list[Test] = Field(default_factory=list[Test])


class Configuration(Model):
    api_version: str
    kind: str
    stages: list[Stage] = Field(default_factory=list[Stage])

    @property
    def tests(self) -> list[Test]:
        """The tests of all stages, in their order."""
        return [test for stage in self.stages for test in stage.tests]


def configuration_of(bundle: Bundle) -> Configuration:
    """Return the configuration of a bundle. Raises: ConfigError if it is missing or invalid."""
    if bundle.scorecard is None:
        unread = next((each for each in bundle.unreadable if each.file == CONFIG_FILE), None)
        why = (
            unread.text
            if unread
            else (
                "the scorecard configuration is missing. Add a Configuration to config/scorecard or to the input objects, and run "
                "`ctrl bundle`, or use --config"
            )
        )
        raise ConfigError(f"{bundle.folder / CONFIG_FILE}: {why}")
    return _decoded(bundle.scorecard, bundle.folder / CONFIG_FILE)


def read_configuration(file: Path) -> Configuration:
    """Return the configuration in a file. Raises: ConfigError."""
    text = read_text(file)
    return _decoded(read_one(text, str(file)), file)


def _decoded(document: Any, file: Path) -> Configuration:
    if not isinstance(document, dict) or (document.get("apiVersion"), document.get("kind")) != (API_VERSION, _KIND):
        raise ConfigError(f"{file}: not a {_KIND} of {API_VERSION}")
    try:
        found = Configuration.from_dict(document)
    except DecodeError as error:
        raise ConfigError(f"{file}: {error}") from error
    if not found.tests:
        raise ConfigError(f"{file}: the stages have no tests. Add one")
    for number, test in enumerate(found.tests, 1):
        if not test.entrypoint:
            raise ConfigError(f"{file}: test {number} has no entrypoint. Set the command of the test")
    return found
