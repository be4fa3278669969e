from scenario.compare import Difference, Verdict, is_known, judge
from scenario.format import FormatError, Scenario, load, load_known
from scenario.golden import Golden
from scenario.runner import Run, run_all
from scenario.stage import Stages

__all__ = [
    "Difference",
    "FormatError",
    "Golden",
    "Run",
    "Scenario",
    "Stages",
    "Verdict",
    "is_known",
    "judge",
    "load",
    "load_known",
    "run_all",
]
