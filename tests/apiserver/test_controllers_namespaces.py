import pytest
from controllers_cluster import cluster, config_map, deployment

from ctrlruntime.apiserver.controllers import build
from ctrlruntime.errors import ConfigError


async def namespace(c, name="team"):
    return await c.api.create("", "namespaces", "", {"metadata": {"name": name}})


async def test_every_namespace_gets_service_account_and_root_ca():
    async with cluster(root_ca="PEM") as c:
        await namespace(c)
        await c.settle()

        for name in ("default", "team"):
            assert c.api.get("", "serviceaccounts", name, "default")
            assert c.api.get("", "configmaps", name, "kube-root-ca.crt")["data"] == {"ca.crt": "PEM"}


async def test_deleted_furniture_comes_back_and_a_changed_ca_is_restored():
    async with cluster(root_ca="PEM") as c:
        await c.settle()

        await c.api.delete("", "serviceaccounts", "default", "default")
        await c.api.delete("", "configmaps", "default", "kube-root-ca.crt")
        await c.settle()
        assert c.api.get("", "serviceaccounts", "default", "default")

        await c.api.merge_patch("", "configmaps", "default", "kube-root-ca.crt", {"data": {"ca.crt": "other"}})
        await c.settle()
        assert c.api.get("", "configmaps", "default", "kube-root-ca.crt")["data"] == {"ca.crt": "PEM"}


async def test_deleted_namespace_is_emptied_and_goes():
    async with cluster() as c:
        await namespace(c)
        work = deployment()
        work["metadata"]["namespace"] = "team"
        await c.create("apps", "deployments", work, namespace="team")
        await c.until(lambda: len(c.ready("team")) == 3)

        await c.api.delete("", "namespaces", "", "team")
        await c.until(lambda: c.api.get("", "namespaces", "", "team") is None)

        assert c.pods("team") == []
        assert c.api.list("", "events", "team") == []


async def test_namespace_with_a_held_object_says_what_remains():
    async with cluster() as c:
        await namespace(c)
        held = config_map("held", namespace="team", finalizers=["example.com/hold"])
        await c.create("", "configmaps", held, namespace="team")
        await c.settle()

        await c.api.delete("", "namespaces", "", "team")
        await c.settle()

        status = c.api.get("", "namespaces", "", "team")["status"]
        found = {x["type"]: (x["status"], x["reason"], x["message"]) for x in status["conditions"]}
        assert status["phase"] == "Terminating"
        assert found["NamespaceContentRemaining"] == (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 1 resource instances",
        )
        assert found["NamespaceFinalizersRemaining"] == (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
        )
        assert found["NamespaceDeletionContentFailure"][0] == "False"
        assert len(found) == 5

        await c.api.merge_patch("", "configmaps", "team", "held", {"metadata": {"finalizers": None}})
        await c.until(lambda: c.api.get("", "namespaces", "", "team") is None)


async def test_namespace_may_be_created_again_at_once():
    async with cluster() as c:
        first = await namespace(c)
        await c.settle()
        await c.api.delete("", "namespaces", "", "team")
        await c.until(lambda: c.api.get("", "namespaces", "", "team") is None)

        second = await namespace(c)
        await c.settle()

        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        assert c.api.get("", "serviceaccounts", "team", "default")


async def test_service_gets_a_slice_with_the_addresses_of_its_ready_pods():
    async with cluster() as c:
        service = {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
        }
        await c.create("", "services", service)
        await c.create("apps", "deployments", deployment(replicas=2))
        await c.settle()

        [found] = c.api.list("discovery.k8s.io", "endpointslices", "default")
        assert found["metadata"]["labels"]["kubernetes.io/service-name"] == "web"
        assert found["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
        assert sorted(e["addresses"][0] for e in found["endpoints"]) == sorted(p["status"]["podIP"] for p in c.pods())
        assert all(
            e["conditions"] == {"ready": True, "serving": True, "terminating": False} for e in found["endpoints"]
        )

        await c.api.delete("", "services", "default", "web")
        await c.settle()
        assert c.api.list("discovery.k8s.io", "endpointslices", "default") == []


def test_controllers_are_chosen_by_name():
    assert [c.name for c in build(["deployment", "namespace"])] == ["namespace", "deployment"]
    assert "kubelet" not in [c.name for c in build(nodes=False)]


def test_unknown_controller_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"controller .?cron.? does not exist\. Use one of .*replicaset"):
        build(["cron"])
