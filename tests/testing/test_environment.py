"""What every backend gives: requests, a kubeconfig, users, CRDs, namespaces."""

from __future__ import annotations

import stat

import pytest
import yaml

from ctrlruntime.errors import ConfigError, Forbidden, Invalid, NotFound, ServiceUnavailable
from ctrlruntime.testing import Environment, eventually
from ctrlruntime.testing.connection import Connection


def definition(plural: str, *versions: str) -> dict:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.testing.example.com"},
        "spec": {
            "group": "testing.example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural[:-1], "kind": plural[:-1].title()},
            "versions": [
                {"name": version, "served": True, "storage": index == 0, "schema": schema}
                for index, version in enumerate(versions or ("v1",))
            ],
        },
    }


def test_requests_are_answered_with_the_kubeconfig(environment):
    config = yaml.safe_load(environment.kubeconfig)
    connection = Connection(config)

    version = connection.request("GET", "/version")

    assert version["major"] == "1"
    assert environment.url == config["clusters"][0]["cluster"]["server"]
    assert environment.url.startswith("https://127.0.0.1:")


def test_the_kubeconfig_file_is_for_this_user_alone(environment):
    assert environment.kubeconfig_path.read_text() == environment.kubeconfig
    assert stat.S_IMODE(environment.kubeconfig_path.stat().st_mode) == 0o600


def test_an_object_is_created_and_read(environment):
    path = f"/api/v1/namespaces/{environment.create_namespace()}/configmaps"

    environment.connection.request("POST", path, {"metadata": {"name": "a"}, "data": {"key": "ä"}})

    assert environment.connection.request("GET", f"{path}/a")["data"] == {"key": "ä"}


async def test_an_added_user_may_do_what_rbac_says(environment):
    user = Connection(yaml.safe_load(environment.add_user("alice", ["devs"])))
    namespace = environment.create_namespace()
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    with pytest.raises(Forbidden, match='User "alice" cannot list resource "configmaps"'):
        user.request("GET", path)

    binding = {
        "metadata": {"name": "devs"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "devs"}],
    }
    role = {
        "metadata": {"name": "edit"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}],
    }
    binding["roleRef"]["kind"] = "Role"
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    environment.connection.request("POST", f"{rbac}/roles", role)
    environment.connection.request("POST", f"{rbac}/rolebindings", binding)

    # The authorizer of kube-apiserver reads roles from watches of its own.
    listed = await eventually(lambda: user.request("GET", path))
    assert listed["kind"] == "ConfigMapList"


def test_crds_are_served_when_the_installation_returns(environment):
    names = environment.install_crds([definition("lamps", "v1", "v2")])

    assert names == ["lamps.testing.example.com"]
    for version in ("v1", "v2"):
        listed = environment.connection.request("GET", f"/apis/testing.example.com/{version}/lamps")
        assert listed["items"] == []


def test_a_crd_that_is_there_is_updated(environment):
    environment.install_crds(definition("tables"))

    environment.install_crds(definition("tables", "v1", "v2"))

    assert environment.connection.request("GET", "/apis/testing.example.com/v2/tables")["items"] == []


def test_crds_come_from_folders_and_other_documents_are_left_out(environment, tmp_path):
    text = yaml.safe_dump_all([{"kind": "ConfigMap"}, definition("chairs"), None, definition("stools")])
    (tmp_path / "many.yaml").write_text(text)
    (tmp_path / "readme.txt").write_text("{{ not YAML")

    names = environment.install_crds(tmp_path)

    assert names == ["chairs.testing.example.com", "stools.testing.example.com"]


def test_a_path_that_is_not_there_is_named(environment, tmp_path):
    with pytest.raises(ConfigError, match=f"cannot read CRDs from {tmp_path}/none: no such file or folder"):
        environment.install_crds([tmp_path / "none"])


def test_a_crd_that_is_no_good_is_refused(environment):
    bad = definition("beds")
    bad["spec"]["names"]["plural"] = "cots"

    with pytest.raises(Invalid):
        environment.install_crds(bad)


async def test_uninstalled_crds_go_and_a_missing_one_is_no_error(environment):
    names = environment.install_crds(definition("doors"))

    environment.uninstall_crds([*names, "none.testing.example.com"])

    def gone() -> bool:  # the real server removes the definition's objects first
        with pytest.raises(NotFound):
            environment.connection.request("GET", "/apis/testing.example.com/v1/doors")
        return True

    assert await eventually(gone)


def test_a_second_start_is_refused(environment):
    with pytest.raises(ConfigError, match="is running"):
        environment.start()


async def test_it_is_an_async_context_manager():
    async with Environment(backend="embedded") as environment:
        assert environment.url

    with pytest.raises(ConfigError, match="not running"):
        _ = environment.url


def test_crds_given_at_construction_are_there_at_the_start():
    with Environment(backend="embedded", crds=[definition("lamps")]) as environment:
        assert environment.connection.request("GET", "/apis/testing.example.com/v1/lamps")["items"] == []


def test_the_embedded_server_is_at_hand_for_its_faults(environment):
    if environment.backend == "embedded":
        thread = environment.embedded

        thread.call(lambda: thread.server.faults.fail_next("GET", "^/version", 503))

        with pytest.raises(ServiceUnavailable):
            environment.connection.request("GET", "/version")
    else:
        with pytest.raises(ConfigError, match="the real backend has no embedded server"):
            _ = environment.embedded


def test_a_reset_goes_back_to_the_start_with_the_given_crds():
    with Environment(backend="embedded", crds=(one for one in [definition("lamps")])) as environment:
        environment.install_crds(definition("tables"))
        environment.create_namespace()
        before = environment.kubeconfig

        environment.reset()

        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        found = [item["metadata"]["name"] for item in environment.connection.request("GET", path)["items"]]
        assert found == ["lamps.testing.example.com"]
        assert environment.kubeconfig == before


def test_only_the_embedded_server_is_reset(environment):
    if environment.backend != "embedded":
        with pytest.raises(ConfigError, match="has no embedded server"):
            environment.reset()
    else:
        environment.create_namespace("left")
        environment.reset()
        assert len(environment.connection.request("GET", "/api/v1/namespaces")["items"]) == 4
