"""What is found in an operator's package, and what is refused."""

from __future__ import annotations

import pytest

from ctrlruntime.errors import GenerateError
from ctrlruntime.project import load

API = """
    import ctrlruntime as ctrl

    class Game(ctrl.Object, group="g.example.com", version="v1"):
        pass
"""


def test_kinds_are_the_classes_defined_in_the_package_and_its_submodules(package):
    name = package(
        api=API,
        other="from .api import Game\nfrom ctrlruntime.api import core\nfrom ctrlruntime.api.core import Pod",
    )

    assert [kind.__name__ for kind in load(name).kinds] == ["Game"]


def test_submodules_of_submodules_are_read_too(package):
    name = package(api__SLASH____init__="", api__SLASH__v1=API)

    assert [kind.__module__ for kind in load(name).kinds] == [f"{name}.api.v1"]


def test_a_single_module_will_do(package):
    name = package(api=API, other=API.replace("Game", "Player"))

    assert [kind.__name__ for kind in load(f"{name}.api").kinds] == ["Game"]


def test_classes_that_stand_for_built_in_kinds_become_no_definitions(package):
    name = package(
        api="""
        import ctrlruntime as ctrl
        from ctrlruntime.api import core

        Widget = ctrl.Unstructured.of("g.example.com/v1", "Widget")
        PodMetadata = ctrl.PartialObjectMetadata.of(core.Pod)

        class Pod(ctrl.Object, group="", version="v1"):
            pass

        class Base(ctrl.Object):
            pass
        """
    )

    assert load(name).kinds == ()


def test_main_and_tests_are_not_imported(package):
    bad = "raise RuntimeError('imported')"
    name = package(__main__=bad, test_api=bad, api_test=bad, conftest=bad, tests__SLASH____init__=bad, api=API)

    assert len(load(name).modules) == 2


def test_permissions_are_taken_from_classes_functions_and_methods(package):
    name = package(
        controller="""
        import ctrlruntime as ctrl

        @ctrl.rbac(resources="a", verbs="get")
        class Reconciler:
            @ctrl.rbac(resources="b", verbs="get")
            async def reconcile(self, request): ...

            @staticmethod
            @ctrl.rbac(resources="c", verbs="get")
            def of(): ...

        @ctrl.rbac(resources="d", verbs="get")
        async def reconcile(request): ...
        """,
        user="from .controller import Reconciler, reconcile",
    )

    assert [rule.resources for rule in load(name).rules] == [("a",), ("b",), ("c",), ("d",)]


def test_setup_may_stand_in_any_module_and_be_imported_elsewhere(package):
    name = package(__init__="from .controller import setup", controller="def setup(mgr): ...")

    found = load(name).setup

    assert found is not None
    assert found.__module__ == f"{name}.controller"


def test_without_setup_and_election_there_is_none(package):
    found = load(package(api=API))

    assert (found.setup, found.election) == (None, None)


def test_the_election_is_the_one_a_module_names(package):
    name = package(
        controller='import ctrlruntime as ctrl\nELECTION = ctrl.LeaderElection("game.example.com")',
        other="from .controller import ELECTION",
    )

    election = load(name).election

    assert election is not None
    assert election.id == "game.example.com"


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (
            {"a": "def setup(mgr): ...", "b": "def setup(mgr): ..."},
            r"several functions setup \(\S+\.a\.setup, \S+\.b\.setup\)\. Keep one",
        ),
        ({"a": "async def setup(mgr): ..."}, r"\.a\.setup is async.* Make it a plain function"),
        ({"a": "def setup(): ..."}, r"\.a\.setup must have one parameter, the manager: def setup\(mgr"),
        ({"a": "def setup(mgr, more): ..."}, "must have one parameter, the manager"),
        (
            {
                "a": "import ctrlruntime as ctrl\n"
                "ONE, TWO = ctrl.LeaderElection('one.example.com'), ctrl.LeaderElection('two.example.com')"
            },
            r"has several leader elections \(one\.example\.com, two\.example\.com\)",
        ),
        ({"a": "import nowhere_at_all"}, r"cannot import \S+\.a \(a\.py:1\): ModuleNotFoundError: No module named"),
        ({"a": "\n\nraise ValueError('two\\nlines')"}, r"cannot import \S+\.a \(a\.py:3\): ValueError: two lines$"),
        ({"a": "import sys\nsys.exit(3)"}, r"cannot import \S+\.a \(a\.py:2\): SystemExit: 3"),
        ({"a": "def setup(mgr:"}, r"cannot import \S+\.a \(a\.py:1\): SyntaxError"),
        (
            {"a": "import ctrlruntime as ctrl\nclass Game(ctrl.Object, group='g', version='v1', plurals='x'): ..."},
            r"cannot import \S+ \(a\.py:2\): TypeError: .*plural",
        ),
    ],
)
def test_what_cannot_be_used_is_one_line_with_its_place(package, modules, message):
    with pytest.raises(GenerateError, match=message) as refused:
        load(package(**modules))

    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("path", ["./nowhere/api.py", "nowhere/api/", "nowhere/api"])
def test_a_path_in_place_of_a_name_is_said_with_the_name(path):
    with pytest.raises(
        GenerateError, match=r"is not a module\. Use the dotted name of your package, like nowhere\.api$"
    ):
        load(path)


def test_a_package_that_is_not_there_is_said_with_advice():
    with pytest.raises(GenerateError, match=r"module nowhere_at_all does not exist\. Use the dotted name"):
        load("nowhere_at_all.operator")
