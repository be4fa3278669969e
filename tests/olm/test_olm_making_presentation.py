"""What people see of an operator, and what of it nobody has said."""

from __future__ import annotations

import pytest

from ctrlruntime.olm.making import unsaid

DIGEST = "sha256:" + "ab" * 32


GOOD = {
    "metadata": {
        "annotations": dict.fromkeys(("capabilities", "categories", "containerImage", "description", "repository", "support"), "x")
    },
    "spec": {
        "displayName": "Shop",
        "description": "Sells.",
        "version": "1.0.0",
        "maintainers": [{"name": "Ada", "email": "ada@x.io"}],
        "provider": {"name": "Acme"},
        "icon": [{"base64data": "eA==", "mediatype": "image/png"}],
        "links": [{"name": "Docs", "url": "https://x.io"}],
        "keywords": ["shop"],
        "minKubeVersion": "1.28.0",
        "installModes": [{"type": "AllNamespaces", "supported": True}],
    },
}  # fmt: skip


def lines_of(csv: dict) -> list[str]:
    scaffold = {"spec": {"description": "What shop does.", "links": [{"name": "shop", "url": "https://shop.x.io"}]}}
    return [
        line.removeprefix("base.yaml: ").partition(". ")[0]
        for line in unsaid(csv, origin="base.yaml", scaffold=scaffold)
    ]


def test_nothing_is_said_of_what_was_said():
    assert lines_of(GOOD) == []


@pytest.mark.parametrize("name", list(GOOD["spec"]))
def test_a_field_that_is_missing_is_named(name):
    spec = {key: value for key, value in GOOD["spec"].items() if key != name}

    assert lines_of({**GOOD, "spec": spec}) == [f"spec.{name} is missing"]


@pytest.mark.parametrize("name", list(GOOD["metadata"]["annotations"]))
def test_an_annotation_that_is_missing_is_named(name):
    annotations = {key: value for key, value in GOOD["metadata"]["annotations"].items() if key != name}

    assert lines_of({**GOOD, "metadata": {"annotations": annotations}}) == [f"metadata.annotations.{name} is missing"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("version", "0.0.0", "missing"),
        ("icon", [{"base64data": "", "mediatype": ""}], "missing"),
        ("installModes", [{"type": "AllNamespaces", "supported": False}], "missing"),
        ("provider", {"name": ""}, "missing"),
        ("provider", {"name": "Provider Name"}, "the scaffold's placeholder"),
        ("maintainers", [{"name": "Ada", "email": "your@email.com"}], "the scaffold's placeholder"),
        ("maintainers", [{"name": "Maintainer Name", "email": "a@x.io"}], "the scaffold's placeholder"),
        ("description", "What shop does.", "the scaffold's placeholder"),
        ("links", [{"name": "shop", "url": "https://shop.x.io"}], "the scaffold's placeholder"),
    ],
)
def test_what_says_nothing_is_named(name, value, said):
    assert lines_of({**GOOD, "spec": {**GOOD["spec"], name: value}}) == [f"spec.{name} is {said}"]


def test_a_container_without_an_image_is_named():
    pod = {"template": {"spec": {"containers": [{"name": "manager"}, {"name": "proxy", "image": ""}]}}}
    spec = {**GOOD["spec"], "install": {"spec": {"deployments": [{"name": "shop", "spec": pod}]}}}

    assert list(unsaid({**GOOD, "spec": spec}, origin="base.yaml")) == [
        "the container manager has no image. Set one in its Deployment",
        "the container proxy has no image. Set one in its Deployment",
    ]


@pytest.mark.parametrize(
    ("image", "count"),
    [("x.io/a", 1), ("x.io:5000/a", 1), ("x.io/a:latest", 1), ("x.io/a:v1", 0), (f"x.io/a@{DIGEST}", 0)],
)
def test_an_image_that_can_change_is_named(image, count):
    pod = {"template": {"spec": {"containers": [{"image": image}, {"image": image}]}}}
    spec = {**GOOD["spec"], "install": {"spec": {"deployments": [{"name": "shop", "spec": pod}]}}}

    found = list(unsaid({**GOOD, "spec": spec}, origin="base.yaml"))

    assert len(found) == count
    assert all(f"the content of the image {image} can change" in line for line in found)


@pytest.mark.parametrize(
    ("modes", "is_namespaced", "count"),
    [
        (["AllNamespaces"], False, 0),
        (["AllNamespaces"], True, 1),
        (["OwnNamespace"], False, 1),
        (["OwnNamespace", "AllNamespaces"], True, 0),
        (["OwnNamespace"], True, 0),
        (["OwnNamespace"], None, 0),
    ],
)
def test_install_modes_that_do_not_fit_the_permissions_are_named(modes, is_namespaced, count):
    spec = {**GOOD["spec"], "installModes": [{"type": mode, "supported": True} for mode in modes]}

    told = list(unsaid({**GOOD, "spec": spec}, origin="base.yaml", is_namespaced=is_namespaced))

    assert len(told) == count
    assert all(line.startswith("base.yaml: spec.installModes ") and ", but the project " in line for line in told)
