"""A bundle from objects to a folder: what it is made from, what is written, and what stays from before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.bundle import read_bundle
from ctrlruntime.olm.making import Given, Request, of_folder, of_text, planned, read_base, with_classes
from ctrlruntime.olm.validation import validate
from ctrlruntime.project.settings import Settings

NOON = datetime(2031, 2, 3, 12, 0, 0, tzinfo=UTC)

# What it is made from

BASE_TEXT = """
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: shop.v0.0.0, namespace: placeholder}
spec: {displayName: Shop, installModes: [{type: AllNamespaces, supported: true}]}
"""
SCORECARD_TEXT = """
apiVersion: scorecard.operatorframework.io/v1alpha3
kind: Configuration
metadata: {name: config, namespace: shop-system}
stages: []
"""
DEPLOYMENT_TEXT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: shop-system}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      serviceAccountName: shop
      containers: [{name: manager, image: x.io/shop:v1}]
"""
ACCOUNT_TEXT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: shop, namespace: shop-system}\n"
ALL_TEXT = f"{BASE_TEXT}---\n{SCORECARD_TEXT}---\n{DEPLOYMENT_TEXT}---\n{ACCOUNT_TEXT}"


def test_a_text_gives_the_base_the_scorecard_and_the_others():
    found = of_text(ALL_TEXT, "a text")

    assert (found.name, found.base["spec"]["displayName"]) == ("shop", "Shop")
    assert found.scorecard is not None
    assert [each["kind"] for each in found.objects] == ["Deployment", "ServiceAccount"]


def test_a_folder_gives_all_its_files_or_what_its_kustomization_renders(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "a.yaml").write_text(BASE_TEXT)
    (tmp_path / "below/b.yml").write_text(DEPLOYMENT_TEXT)
    (tmp_path / "README.md").write_text("no manifest")
    assert [each["metadata"]["name"] for each in of_folder(tmp_path).objects] == ["shop"]

    (tmp_path / "kustomization.yaml").write_text("namePrefix: my-\nresources: [a.yaml, below/b.yml]\n")

    assert [each["metadata"]["name"] for each in of_folder(tmp_path).objects] == ["my-shop"]


def test_a_base_can_come_from_a_file_of_its_own(tmp_path):
    (tmp_path / "base.yaml").write_text(BASE_TEXT)

    found = of_text(DEPLOYMENT_TEXT, "a text", base=read_base(tmp_path / "base.yaml"))

    assert (found.name, len(found.objects)) == ("shop", 1)


@pytest.mark.parametrize("name", ["cool.vault.v0.0.0", "cool.vault", "cool.vault-v0.0.0-1"])
def test_a_package_may_have_dots(name):
    found = of_text(BASE_TEXT.replace("shop.v0.0.0", name), "a text")

    assert found.name == "cool.vault"


OPERATOR = """
    import ctrlruntime as ctrl
    from ctrlruntime.api.apps.v1 import Deployment
    from ctrlruntime.api.core.v1 import ConfigMap, Secret


    class Cart(ctrl.Object, group="x.io", version="v1"):
        size: int = 1


    class Shelf(ctrl.Object, group="x.io", version="v1"):
        size: int = 1


    async def reconcile(request): ...


    def setup(mgr):
        of_carts = ctrl.new_controller_managed_by(mgr).for_(Cart).owns(Deployment).owns(ConfigMap)
        of_carts.watches(Secret, ctrl.handler.EnqueueRequestForObject()).complete(reconcile)
        ctrl.new_controller_managed_by(mgr).for_(Shelf).complete(reconcile)
"""


def test_classes_tell_the_kinds_and_what_they_bring_along(package, tmp_path):
    settings = Settings(project_name="shop", package=package(operator=OPERATOR), domain="x.io")

    found = with_classes(of_text(ALL_TEXT, "a text"), tmp_path, settings)

    assert [kind.__name__ for kind in found.kinds] == ["Cart", "Shelf"]
    owned = {gvk.kind: [each.kind for each in kinds] for gvk, kinds in found.owns.items()}
    assert owned == {"Cart": ["Deployment", "ConfigMap"], "Shelf": []}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DEPLOYMENT_TEXT, "a text has no ClusterServiceVersion. Pass the file of one with --base"),
        (f"{BASE_TEXT}---{BASE_TEXT}", r"a text has several ClusterServiceVersions \(shop.v0.0.0, shop.v0.0.0\)"),
        (f"{BASE_TEXT}---\nkind: Service\n", "a text has a document that is not an object"),
        (f"{BASE_TEXT}---\n- 1\n", "a text has a document that is not an object"),
        (BASE_TEXT.replace("spec: {", "not: {"), "the ClusterServiceVersion shop.v0.0.0 has no spec"),
    ],
)
def test_what_no_bundle_can_be_made_from_is_refused(text, said):
    with pytest.raises(ConfigError, match=said):
        of_text(text, "a text")


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n", "\ufeff"])
def test_a_text_without_an_object_is_empty(text):
    with pytest.raises(ConfigError, match=r"^the standard input is empty. Add the operator's manifests$"):
        of_text(text, "the standard input")


def test_what_is_no_object_is_told_with_its_file(tmp_path):
    (tmp_path / "base.yaml").write_text(BASE_TEXT)
    (tmp_path / "values.yaml").write_text("replicas: 1\n")

    with pytest.raises(ConfigError, match=r"/values\.yaml has a document that is not an object"):
        of_folder(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file or directory"), (b"\xff", "it is not UTF-8 text")],
)
def test_a_file_that_cannot_be_read_is_told_without_pythons_words(tmp_path, content, said):
    if content is not None:
        (tmp_path / "base.yaml").write_bytes(content)

    with pytest.raises(ConfigError) as caught:
        read_base(tmp_path / "base.yaml")

    assert str(caught.value) == f"cannot read {tmp_path / 'base.yaml'}: {said}"


def test_a_base_of_its_own_is_where_fields_are_to_be_set(tmp_path):
    (tmp_path / "base.yaml").write_text(BASE_TEXT)
    base = read_base(tmp_path / "base.yaml")

    assert of_text(DEPLOYMENT_TEXT, "a text", base=base, origin="base.yaml").origin == "base.yaml"
    assert of_text(ALL_TEXT, "a text").origin == "a text"


def test_a_base_has_to_be_one(tmp_path):
    (tmp_path / "base.yaml").write_text(DEPLOYMENT_TEXT)

    with pytest.raises(ConfigError, match="must have one ClusterServiceVersion, and has 0"):
        read_base(tmp_path / "base.yaml")
    with pytest.raises(ConfigError, match="does not exist"):
        of_folder(tmp_path / "none")


# The folder


def plan_of(folder: Path, *, text: str = ALL_TEXT, version: str | None = None, environ=None, now=NOON, **options):
    """A plan for objects of another tool, and its warnings."""
    request = Request(given=Given(version=version))
    return planned(
        folder, of_text(text, "a text"), request, environ=environ or {}, clock=lambda: now, warn=lambda _text: None, **options
    )  # fmt: skip


def made(folder: Path, **options) -> list[str]:
    """The bundle, written; its files as they were told."""
    plan = plan_of(folder, **options)
    plan.refresh.apply()
    return [str(path.relative_to(folder.parent)) for path in plan.refresh.stale]


def created_at(folder: Path) -> str:
    csv = read_bundle(folder).csv
    assert csv is not None
    return csv.metadata["annotations"]["createdAt"]


def test_a_bundle_of_other_objects_is_written_and_read_again(tmp_path):
    written = made(tmp_path / "bundle", version="1.0.0")

    assert written == [
        "bundle/manifests/shop.clusterserviceversion.yaml",
        "bundle/metadata/annotations.yaml",
        "bundle/tests/scorecard/config.yaml",
        "bundle.Dockerfile",
        "bundle.Dockerfile.dockerignore",
    ]
    bundle = read_bundle(tmp_path / "bundle")
    assert (bundle.package, bundle.channels, bundle.unreadable) == ("shop", ("candidate",), ())
    assert bundle.scorecard is not None
    assert bundle.scorecard["metadata"] == {"name": "config"}


def test_the_time_of_creation_moves_with_the_content_alone(tmp_path):
    folder, later = tmp_path / "bundle", NOON + timedelta(days=1)
    made(folder, version="1.0.0")
    assert created_at(folder) == "2031-02-03T12:00:00Z"

    assert made(folder, now=later) == []
    assert created_at(folder) == "2031-02-03T12:00:00Z"

    assert made(folder, now=later, version="1.0.1")
    assert created_at(folder) == "2031-02-04T12:00:00Z"


def test_a_bundle_with_a_release_is_valid(tmp_path):
    made(tmp_path / "bundle", version="1.0.0", text=ALL_TEXT.replace("spec: {display", 'spec: {release: "1", display'))

    bundle = read_bundle(tmp_path / "bundle")
    assert bundle.csv is not None
    assert bundle.csv.name == "shop-v1.0.0-1"
    assert not [each for each in validate(bundle) if each.code.startswith("release")]


def test_a_comparison_keeps_the_time_of_creation(tmp_path):
    folder = tmp_path / "bundle"
    made(folder, version="1.0.0")

    changes = plan_of(folder, version="1.0.1", now=NOON + timedelta(days=1), is_renewed=False).refresh.changes

    assert changes
    assert not any("createdAt" in line for change in changes for line in change.diff().splitlines() if line[0] in "+-")


def test_the_time_of_creation_is_in_utc_and_can_be_said_by_the_environment(tmp_path):
    made(tmp_path / "a", version="1.0.0", now=NOON.astimezone(timezone(timedelta(hours=5))))
    made(tmp_path / "b", version="1.0.0", environ={"SOURCE_DATE_EPOCH": "1700000000"})

    assert created_at(tmp_path / "a") == "2031-02-03T12:00:00Z"
    assert created_at(tmp_path / "b") == "2023-11-14T22:13:20Z"
    with pytest.raises(ConfigError, match="SOURCE_DATE_EPOCH is 'noon': it must be seconds since 1970"):
        plan_of(tmp_path / "c", version="1.0.0", environ={"SOURCE_DATE_EPOCH": "noon"})


SERVICE_TEXT = "---\napiVersion: v1\nkind: Service\nmetadata: {name: hooks}\nspec: {ports: [{port: 443}]}\n"


def test_what_is_made_no_more_goes_and_what_a_person_put_there_stays(tmp_path):
    folder = tmp_path / "bundle"
    made(folder, version="1.0.0", text=ALL_TEXT + SERVICE_TEXT)
    ours, theirs = folder / "manifests/hooks_v1_service.yaml", folder / "manifests/mine.yaml"
    assert ours.is_file()
    theirs.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\n")
    (folder / "metadata/dependencies.yaml").write_text("dependencies: []\n")

    plan = plan_of(folder, text=f"{BASE_TEXT}---\n{DEPLOYMENT_TEXT}---\n{ACCOUNT_TEXT}")
    plan.refresh.apply()

    assert plan.refresh.removed == [ours, folder / "tests/scorecard/config.yaml"]
    assert plan.strangers == (theirs,)
    assert not ours.exists()
    assert not (folder / "tests/scorecard").exists()
    assert theirs.exists()
    assert (folder / "metadata/dependencies.yaml").exists()
    assert "scorecard" not in (folder / "metadata/annotations.yaml").read_text()
    assert "scorecard" not in (tmp_path / "bundle.Dockerfile").read_text()


def test_a_file_of_another_tool_is_replaced_and_named(tmp_path):
    folder = tmp_path / "bundle"
    made(folder, version="1.0.0")
    csv = folder / "manifests/shop.clusterserviceversion.yaml"
    csv.write_text(csv.read_text().partition("\n")[2].replace("Shop", "Store"))

    plan = plan_of(folder)

    assert (plan.refresh.replaced, plan.refresh.stale) == ([csv], [csv])


def test_scorecard_tests_of_a_person_stay(tmp_path):
    folder = tmp_path / "bundle"
    (folder / "tests/scorecard").mkdir(parents=True)
    (folder / "tests/scorecard/config.yaml").write_text(SCORECARD_TEXT)

    made(folder, version="1.0.0", text=f"{BASE_TEXT}---\n{DEPLOYMENT_TEXT}---\n{ACCOUNT_TEXT}")

    assert (folder / "tests/scorecard/config.yaml").read_text() == SCORECARD_TEXT
    assert "tests/scorecard/" in (folder / "metadata/annotations.yaml").read_text()


@pytest.mark.parametrize("text", ["annotations: a: b\n", "annotations: 7\n", "- 1\n"])
def test_broken_annotations_are_refused_and_nothing_is_written(tmp_path, text):
    folder = tmp_path / "bundle"
    made(folder, version="1.0.0")
    (folder / "metadata/annotations.yaml").write_text(text)

    with pytest.raises(ConfigError, match=r"metadata/annotations\.yaml"):
        plan_of(folder, version="1.0.1")
