"""The compiler, the evaluator and the cost estimate against what kube-apiserver 1.36.1 answered."""

from __future__ import annotations

import pytest
from recorded_rules import RECORDED

from ctrlruntime import cel
from ctrlruntime.cel.schema_types import converter, declare

COMPILE, EVALUATE, COST = RECORDED["compile"], RECORDED["evaluate"], RECORDED["cost"]
NOT_SUPPORTED = {"google.protobuf.Timestamp{} == null"}


def compile_all(schema, rule):
    declared = declare(schema, name="selfType1")
    return cel.compile(rule, variables={"self": declared, "oldSelf": declared})


def compile_error(rule):
    try:
        program = compile_all(COMPILE["schema"], rule)
    except cel.InstantiationError as error:
        return f"program instantiation failed: {error}"
    except cel.CompileError as error:
        return f"compilation failed: {error}"
    return "" if program.result_type.kind == "bool" else "cel expression must evaluate to a bool"


@pytest.mark.parametrize(("rule", "error"), COMPILE["rules"].items())
def test_a_rule_compiles_or_fails_as_upstream_says(rule, error):
    if rule in NOT_SUPPORTED:
        pytest.skip("messages of protobuf cannot be made")

    assert compile_error(rule) == error


@pytest.mark.parametrize(("expression", "shown"), EVALUATE["expressions"].items())
def test_an_expression_has_upstreams_value_or_failure(expression, shown):
    value = converter(EVALUATE["schema"])(EVALUATE["self"])
    rule = compile_all(EVALUATE["schema"], f"[dyn({expression})].size() == 5")
    message = compile_all(EVALUATE["schema"], f"'%s'.format([{expression}])")

    try:
        rule.evaluate(self=value)
        found = message.evaluate(self=value).strip() or "failed rule: RULE"
    except cel.EvaluationError as error:
        if str(error).startswith("no such overload"):
            why = "call arguments did not match a supported operator, function or macro signature"
            found = f"'{error}': {why} for rule: RULE"
        else:
            found = f"{error} evaluating rule: RULE"

    assert found == shown.strip()


@pytest.mark.parametrize(("rule", "cost"), COST["rules"].items())
def test_a_rule_costs_what_upstream_estimates(rule, cost):
    estimated = compile_all(COST["schema"], rule).cost().most

    if cost is None:
        assert estimated > 1_000_000_000
    else:
        assert estimated == pytest.approx(cost, abs=1 if cost > 1_000_000 else 0)
