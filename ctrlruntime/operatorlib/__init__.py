"""Add-ons for operators: OLM conditions, pruning, owners in annotations, pausing, variables for operands.

The modules are independent of each other, and the rest of the package does not use them.
"""

from ctrlruntime.operatorlib.handlers import (
    InstrumentedEnqueueRequestForObject,
    enqueue_request_for_annotation,
    pausable,
    set_owner_annotations,
)
from ctrlruntime.operatorlib.olm import ConditionNotSetError, OperatorCondition, OperatorConditionFactory
from ctrlruntime.operatorlib.predicates import DependentPredicate, NoGenerationPredicate, PausePredicate
from ctrlruntime.operatorlib.prune import Pruner, keep_newest, older_than
from ctrlruntime.operatorlib.variables import proxy_variables, related_image

__all__ = [
    "ConditionNotSetError",
    "DependentPredicate",
    "InstrumentedEnqueueRequestForObject",
    "NoGenerationPredicate",
    "OperatorCondition",
    "OperatorConditionFactory",
    "PausePredicate",
    "Pruner",
    "enqueue_request_for_annotation",
    "keep_newest",
    "older_than",
    "pausable",
    "proxy_variables",
    "related_image",
    "set_owner_annotations",
]
