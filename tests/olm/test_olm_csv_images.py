"""Related images: variables RELATED_IMAGE_NAME of Deployments, and what the base says."""

from __future__ import annotations

import pytest
from csv_objects import container, variables

from ctrlruntime.errors import GenerateError
from ctrlruntime.olm.csv.images import related_images, with_own_images


def entry(*containers, name="shop", init=()):
    pod = {"containers": list(containers), "initContainers": list(init)}
    return {"name": name, "spec": {"template": {"spec": pod}}}


def named(name="manager", **values):
    return container(name, env=variables(**{f"RELATED_IMAGE_{key}": value for key, value in values.items()}))


@pytest.mark.parametrize(
    ("deployments", "expected"),
    [
        pytest.param([entry(container(env=variables(OTHER="a")))], [], id="none"),
        pytest.param([entry(named(MEMCACHED_EXPORTER="e:1"))], [("memcached-exporter", "e:1")], id="a name of words"),
        pytest.param(
            [entry(named(B="b:1", A="a:1"), init=[named("first", C="c:1")])],
            [("a", "a:1"), ("b", "b:1"), ("c", "c:1")],
            id="init containers too, by name",
        ),
        pytest.param([entry(named(A="a:1"), named("two", A="a:1"))], [("a", "a:1")], id="the same twice"),
        pytest.param(
            [entry(named(A="a:1")), entry(named(A="a:2"), name="other")],
            [("other-a", "a:2"), ("shop-a", "a:1")],
            id="one name in two Deployments",
        ),
        pytest.param(
            [entry(named(A="a:1"), named("two", A="a:2"))],
            [("shop-manager-a", "a:1"), ("shop-two-a", "a:2")],
            id="one name in two containers",
        ),
    ],
)
def test_variables_name_images(deployments, expected):
    warnings: list[str] = []

    found = related_images(deployments, [], warnings.append)

    assert [(each["name"], each["image"]) for each in found] == expected
    assert warnings == []


def test_an_image_with_two_names_has_none():
    warnings: list[str] = []

    found = related_images([entry(named(A="a:1", B="a:1", C="c:1"))], [], warnings.append)

    assert found == [{"name": "", "image": "a:1"}, {"name": "c", "image": "c:1"}]
    assert warnings == ["the image a:1 has several names (a, b), so its related image has no name"]


RELATED = [{"name": "db", "image": "db:1"}]


@pytest.mark.parametrize(
    ("deployments", "related", "expected"),
    [
        pytest.param([entry(container())], [], [("manager", "shop:v1")], id="the operator's own"),
        pytest.param(
            [entry(container(), init=[container("first", "first:v1")])],
            RELATED,
            [("db", "db:1"), ("first", "first:v1"), ("manager", "shop:v1")],
            id="init containers too, after those that are named",
        ),
        pytest.param([entry(container("x", "db:1"))], RELATED, [("db", "db:1")], id="one that has a name"),
        pytest.param([entry(container(), container("two"))], [], [("manager", "shop:v1")], id="an image of two"),
        pytest.param(
            [entry(container()), entry(container(image="other:v1"), name="other")],
            [],
            [("shop-manager", "shop:v1"), ("other-manager", "other:v1")],
            id="one name for two images",
        ),
        pytest.param(
            [entry(container("db"))], RELATED, [("db", "db:1"), ("shop-db", "shop:v1")], id="a name that is taken"
        ),
        pytest.param([entry({"name": "none"})], [], [], id="without an image"),
    ],
)
def test_images_of_containers_are_named_after_them(deployments, related, expected):
    found = with_own_images(deployments, related)

    assert [(each["name"], each["image"]) for each in found] == expected
    assert RELATED == [{"name": "db", "image": "db:1"}]


def test_the_base_keeps_what_no_variable_names():
    said = [{"name": "z", "image": "z:1"}, {"name": "a", "image": "a:0"}, {"name": "again", "image": "a:1"}]

    found = related_images([entry(named(A="a:1"))], said, pytest.fail)

    assert found == [{"name": "z", "image": "z:1"}, {"name": "a", "image": "a:1"}]


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ({"name": "RELATED_IMAGE_A", "valueFrom": {"configMapKeyRef": {}}}, "valueFrom is not supported"),
        ({"name": "RELATED_IMAGE_A"}, "it has no value"),
        ({"name": "RELATED_IMAGE_", "value": "a:1"}, "no value or no name"),
    ],
)
def test_an_image_that_is_not_known_here_is_refused(variable, message):
    with pytest.raises(GenerateError, match=f"Deployment/shop, container manager: .*{message.split()[-1]}") as error:
        related_images([entry(container(env=[variable]))], [], pytest.fail)

    assert message in str(error.value)
