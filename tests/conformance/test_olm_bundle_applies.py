"""What is in a bundle is taken by an API server as it stands, with OLM's definitions and strict about fields: the examples, on both servers."""

from __future__ import annotations

import json
import re

import pytest
from example_bundles import EXAMPLES, bundle_of
from olm_definitions import olm_definitions

import ctrlruntime as ctrl
from ctrlruntime.errors import BadRequest, Invalid
from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.testing import eventually

DEFINITION = ctrl.Unstructured.of("apiextensions.k8s.io/v1", "CustomResourceDefinition")
CSV = ctrl.Unstructured.of("operators.coreos.com/v1alpha1", "ClusterServiceVersion")


@pytest.fixture(scope="module", params=["memcached", "game", "sidecarset"])
def bundle(request, tmp_path_factory):
    return bundle_of(EXAMPLES / request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def memcached(tmp_path_factory):
    """The ClusterServiceVersion of one of them."""
    return bundle_of(EXAMPLES / "memcached", tmp_path_factory.mktemp("one")).csv.document


@pytest.fixture(scope="module")
def definitions(server):
    names = server.install_crds(olm_definitions())
    yield
    server.uninstall_crds(names)


@pytest.fixture
async def admin(server, definitions):
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)), scheme=ctrl.Scheme(ClusterServiceVersion))
    yield ctrl.client.with_field_validation(cluster.unfenced_client(), "Strict")
    await cluster.close()


@pytest.fixture
async def apply(admin, namespace):
    """Applies a document, in the namespace of the test when its kind is in any; what is in none goes after the test."""
    applied = {}

    async def put(document):
        kind = ctrl.Unstructured.of(document["apiVersion"], document["kind"])
        is_namespaced = await admin.mapper.is_namespaced(ctrl.gvk_for(kind))
        place = {"namespace": namespace} if is_namespaced else {}
        obj = kind.from_dict({**document, "metadata": {**document["metadata"], **place}})
        stored = await admin.apply(obj, field_owner="olm")
        if not is_namespaced:
            applied[kind, stored.metadata.name] = stored
        return stored

    yield put
    for each in reversed(applied.values()):
        await admin.delete(each)
    for name in [name for kind, name in applied if kind is DEFINITION]:  # it is not taken again before it is gone

        async def is_gone(name=name):
            return await admin.get_or_none(DEFINITION, ctrl.NamespacedName("", name)) is None

        await eventually(is_gone)


def is_within(wanted, stored):
    """Say whether all of a document is in the stored one, which may have defaults besides."""
    match wanted, stored:
        case dict(), dict():
            return all(name in stored and is_within(value, stored[name]) for name, value in wanted.items())
        case list(), list():
            return len(wanted) == len(stored) and all(map(is_within, wanted, stored))
        case _:
            return wanted == stored


async def test_all_of_a_bundle_is_taken_and_kept_as_it_is(bundle, apply):
    for each in bundle.objects:
        stored = await apply(each.document)

        assert is_within({**each.document, "metadata": {}}, stored.to_dict() | {"metadata": {}})
        assert stored.metadata.annotations.items() >= each.metadata.get("annotations", {}).items()
        again = await apply(each.document)
        # Of a definition the status moves on meanwhile.
        word = "generation" if each in bundle.definitions else "resource_version"
        assert getattr(again.metadata, word) == getattr(stored.metadata, word)


async def test_the_csv_reads_back_equal_and_as_our_class(bundle, apply, admin):
    document = bundle.csv.document
    stored = await apply(document)

    assert stored["spec"] == document["spec"]
    assert stored.metadata.annotations == document["metadata"]["annotations"]
    read = await admin.get(ClusterServiceVersion, ctrl.object_key(stored))
    assert read.spec.version == "0.0.1"
    assert read.spec.install.spec.deployments[0].spec.template.spec.containers[0].name == "manager"
    assert read.spec == ClusterServiceVersion.from_dict(document).spec


async def test_the_definitions_are_served_and_the_examples_of_consoles_accepted(bundle, apply, admin, namespace):
    for each in bundle.definitions:
        stored = await apply(each.document)

        async def is_established(stored=stored):
            found = await admin.get(DEFINITION, ctrl.object_key(stored))
            conditions = found.get_path("status", "conditions", default=[])
            return {"Established", "NamesAccepted"} <= {each["type"] for each in conditions if each["status"] == "True"}

        await eventually(is_established)

    examples = json.loads(bundle.csv.metadata["annotations"]["alm-examples"])
    assert {each["kind"] for each in examples} == {
        each["kind"] for each in bundle.csv.spec["customresourcedefinitions"]["owned"]
    }
    for example in examples:

        async def is_stored(example=example):
            return await apply(example)

        await eventually(is_stored)


def changed(document, change):
    document = json.loads(json.dumps(document))
    change(document)
    return document


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda csv: csv["spec"].update(instalModes=[]), "spec.instalModes"),
        (lambda csv: csv["spec"]["install"]["spec"]["deployments"][0].update(specs={}), "deployments[0].specs"),
        (lambda csv: csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]["containers"][0]
         .update(imagePullPolicies="Always"), "containers[0].imagePullPolicies"),
        (lambda csv: csv["spec"]["customresourcedefinitions"]["owned"][0].update(descriptors=[]), "owned[0].descriptors"),
    ],
)  # fmt: skip
async def test_a_field_that_no_csv_has_is_refused(admin, namespace, memcached, change, field):
    metadata = {**memcached["metadata"], "namespace": namespace}

    with pytest.raises(BadRequest, match=re.escape('unknown field "spec.') + ".*" + re.escape(field.split(".", 1)[-1])):
        await admin.create(CSV.from_dict(changed({**memcached, "metadata": metadata}, change)))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda csv: csv["spec"].pop("install"), "spec.install"),
        (lambda csv: csv["spec"].pop("displayName"), "spec.displayName"),
        (lambda csv: csv["spec"]["install"]["spec"].pop("deployments"), "spec.install.spec.deployments"),
        (lambda csv: csv["spec"]["installModes"][0].update(type="SomeNamespaces"), r"spec.installModes[0].type"),
        (lambda csv: csv["spec"]["install"]["spec"]["clusterPermissions"][0].pop("rules"), "clusterPermissions[0].rules"),
    ],
)  # fmt: skip
async def test_a_csv_without_what_olm_needs_is_refused(admin, namespace, memcached, change, field):
    metadata = {**memcached["metadata"], "namespace": namespace}

    with pytest.raises(Invalid, match=re.escape(field)):
        await admin.create(CSV.from_dict(changed({**memcached, "metadata": metadata}, change)))
