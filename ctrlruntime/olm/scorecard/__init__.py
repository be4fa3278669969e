"""The scorecard: six tests of a bundle that need no cluster. Tests of other images are listed, but not run."""

from ctrlruntime.olm.scorecard.configuration import Configuration, Stage, Test, configuration_of, read_configuration
from ctrlruntime.olm.scorecard.outcome import Outcome, State, documents, junit
from ctrlruntime.olm.scorecard.running import run, selected

__all__ = [
    "Configuration",
    "Outcome",
    "Stage",
    "State",
    "Test",
    "configuration_of",
    "documents",
    "junit",
    "read_configuration",
    "run",
    "selected",
]
