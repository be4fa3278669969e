import pytest

from ctrlruntime.spelling import did_you_mean, nearest

KINDS = ["Deployment", "DaemonSet", "Pod"]


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("Deploymet", "; did you mean 'Deployment'?"),
        ("deployment", "; did you mean 'Deployment'?"),
        ("POD", "; did you mean 'Pod'?"),
        ("Zebra", ". Use one of Deployment, DaemonSet, Pod"),
        ("", ". Use one of Deployment, DaemonSet, Pod"),
    ],
)
def test_the_similar_name_is_suggested_else_all_are_listed(name, end):
    assert did_you_mean(name, KINDS) == end


def test_the_caller_can_say_what_to_do_where_no_name_is_similar():
    assert did_you_mean("Zebra", KINDS, ". Remove it") == ". Remove it"
    assert did_you_mean("Pods", KINDS, ". Remove it") == "; did you mean 'Pod'?"


def test_without_known_names_nothing_is_suggested():
    assert did_you_mean("Pod", []) == ""
    assert nearest("Pod", []) is None


def test_known_names_are_read_once_and_listed_once():
    assert did_you_mean("Zebra", iter(["Pod", "Pod"])) == ". Use one of Pod"


def test_of_names_that_differ_in_case_only_the_first_counts():
    assert nearest("POD", ["pod", "Pod"]) == "pod"


def test_the_least_similarity_can_be_raised():
    assert nearest("logs", ["log"], similar=0.8) == "log"
    assert nearest("lag", ["log"], similar=0.8) is None
