"""The texts of a bundle's files."""

from __future__ import annotations

import pytest

from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.documents import read_one
from ctrlruntime.olm.csv import Assembled
from ctrlruntime.olm.making.files import annotations_edited, dockerfile, manifest_files
from ctrlruntime.olm.making.identity import BundleIdentity

PREFIX = "operators.operatorframework.io.bundle"


def object_of(api_version: str, kind: str, name: str, **more: object) -> dict:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more}


CSV = object_of("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "shop.v1.0.0", spec={})


def test_each_object_has_a_file_named_after_it():
    crd = object_of(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", "carts.x.io", spec={"group": "x.io", "names": {"plural": "carts"}}
    )  # fmt: skip
    service = object_of("v1", "Service", "shop-hooks")
    role = object_of("rbac.authorization.k8s.io/v1", "ClusterRole", "shop:Viewer")

    files = manifest_files(Assembled(csv=CSV, others=[crd, service, role]), "shop")

    assert list(files) == [
        "manifests/shop.clusterserviceversion.yaml",
        "manifests/x.io_carts.yaml",
        "manifests/shop-hooks_v1_service.yaml",
        "manifests/shop-viewer_rbac.authorization.k8s.io_v1_clusterrole.yaml",
    ]
    assert all(text.startswith("# Written by `ctrl bundle`: ") for text in files.values())
    assert [read_one(text, "") for text in files.values()] == [CSV, crd, service, role]


def test_two_objects_of_one_file_are_refused():
    service = object_of("v1", "Service", "hooks")

    with pytest.raises(GenerateError, match=r"cannot write manifests/hooks_v1_service\.yaml: two objects"):
        manifest_files(Assembled(csv=CSV, others=[service, dict(service)]), "shop")


@pytest.mark.parametrize(
    "spec",
    [{"group": "x.io", "names": 7}, {"names": {"plural": "carts"}}, {"group": "../../x", "names": {"plural": "carts"}}],
)
def test_a_definition_that_no_file_can_be_named_after_is_refused(spec):
    crd = object_of("apiextensions.k8s.io/v1", "CustomResourceDefinition", "carts.x.io", spec=spec)

    with pytest.raises(
        GenerateError, match=r"CustomResourceDefinition/carts\.x\.io: spec\.group and spec\.names\.plural"
    ):
        manifest_files(Assembled(csv=CSV, others=[crd]), "shop")


IDENTITY = BundleIdentity(package="shop", version="1.0.0", channels=("fast", "stable"), default_channel="stable")


def annotations(text: str | None, *, identity: BundleIdentity = IDENTITY, with_tests: bool = True) -> str:
    return annotations_edited(text, identity, CSV, with_tests=with_tests, where="a.yaml").text


def test_the_annotations_say_what_it_is_and_where():
    assert read_one(annotations(None), "") == {
        "annotations": {
            f"{PREFIX}.mediatype.v1": "registry+v1",
            f"{PREFIX}.manifests.v1": "manifests/",
            f"{PREFIX}.metadata.v1": "metadata/",
            f"{PREFIX}.package.v1": "shop",
            f"{PREFIX}.channels.v1": "fast,stable",
            f"{PREFIX}.channel.default.v1": "stable",
            "operators.operatorframework.io.test.mediatype.v1": "scorecard+v1",
            "operators.operatorframework.io.test.config.v1": "tests/scorecard/",
        }
    }


def test_annotations_of_a_person_stay_with_their_comments():
    before = annotations(None) + '  # For the catalog of OpenShift.\n  com.redhat.openshift.versions: "v4.14"\n'
    one = BundleIdentity(package="shop", version="1.0.0", channels=("fast",), default_channel="")

    after = annotations(before, identity=one, with_tests=False)

    assert after.endswith('  # For the catalog of OpenShift.\n  com.redhat.openshift.versions: "v4.14"\n')
    found = read_one(after, "")["annotations"]
    assert found[f"{PREFIX}.channels.v1"] == "fast"
    assert not {f"{PREFIX}.channel.default.v1", "operators.operatorframework.io.test.config.v1"} & set(found)


def test_the_annotations_say_what_made_it_as_the_csv_does():
    name = "operators.operatorframework.io"
    csv = {**CSV, "metadata": {"annotations": {f"{name}/builder": "us", f"{name}/project_layout": "ours/v1"}}}

    text = annotations_edited(None, IDENTITY, csv, with_tests=False, where="a.yaml").text

    found = {key: value for key, value in read_one(text, "")["annotations"].items() if ".metrics." in key}
    assert found == {
        f"{name}.metrics.mediatype.v1": "metrics+v1",
        f"{name}.metrics.builder": "us",
        f"{name}.metrics.project_layout": "ours/v1",
    }


def test_the_image_has_the_annotations_as_labels():
    text = dockerfile("bundle", {"a.b": "c/", "words": 'say "$x"', "list": "=v4.1", "on": True}, with_tests=False)

    assert [line for line in text.splitlines() if line and not line.startswith("#")] == [
        "FROM scratch",
        "LABEL a.b=c/",
        r'LABEL words="say \"\$x\""',
        'LABEL list="=v4.1"',
        "LABEL on=true",
        "COPY bundle/manifests /manifests/",
        "COPY bundle/metadata /metadata/",
    ]


def test_a_folder_with_blanks_is_one_word_of_the_dockerfile():
    lines = dockerfile('my "bundle"', {"a": "b"}, with_tests=True).splitlines()

    assert "#   docker build -f 'my \"bundle\".Dockerfile' -t IMAGE ." in lines
    assert lines[-3:] == [
        r'COPY ["my \"bundle\"/manifests", "/manifests/"]',
        r'COPY ["my \"bundle\"/metadata", "/metadata/"]',
        r'COPY ["my \"bundle\"/tests/scorecard", "/tests/scorecard/"]',
    ]
