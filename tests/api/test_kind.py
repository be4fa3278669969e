"""The order of API versions, and what a class says for consoles."""

from __future__ import annotations

import pytest

import ctrlruntime as ctrl
from ctrlruntime.api import meta
from ctrlruntime.api.kind import version_priority


def test_versions_are_ordered_by_stage_then_number_then_name():
    ordered = [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v10beta3",
        "v3beta1",
        "v12alpha1",
        "v11alpha2",
        "foo1",
        "foo10",
        "v1beta",
    ]

    shuffled = ordered[::-1]

    assert sorted(shuffled, key=version_priority) == ordered


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ctrl.crd.OLM(display_name=5), "text for display_name, not 5"),
        (lambda: ctrl.crd.OLM(order="a"), "number for its order"),
        (lambda: ctrl.crd.OLM(actions=["x"]), "list of OLMAction"),
        (lambda: ctrl.crd.OLM(resources=["Pod"]), "'Pod' is neither"),
        (lambda: ctrl.crd.OLM(resources=[("v1", "Pod")]), "as in \\('Pod', 'v1'\\)"),
        *(
            (lambda each=each: ctrl.crd.OLM(resources=[each]), "is neither")
            for each in (("A",), ("A", ""), (1, 2), ("A", "b", "c", "d"))
        ),
        (lambda: ctrl.crd.OLM(resources=[meta.Condition]), "Condition.*is neither"),
        (lambda: ctrl.crd.OLMAction(path=""), "the path of a field"),
        (lambda: ctrl.crd.OLMAction(path="spec.a", x="Secret"), "list of hints"),
        (lambda: type("A", (ctrl.Object,), {}, group="a.b", version="v1", olm="x"), "olm is a ctrl.crd.OLM"),
        (lambda: ctrl.crd.OLMDescriptor(5), "text to display"),
        (lambda: ctrl.crd.OLMDescriptor(x="podCount"), "list of hints"),
        (lambda: ctrl.crd.OLMDescriptor(x=[5]), "list of hints"),
        (lambda: ctrl.crd.OLMDescriptor(order="a"), "number for its order"),
    ],
)
def test_what_cannot_be_shown_fails_where_it_is_written(make, says):
    with pytest.raises(TypeError, match=says):
        make()
