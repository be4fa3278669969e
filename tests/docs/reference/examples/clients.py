"""Runs after the blocks of docs/reference/examples/clients.md, in their namespace."""

import asyncio

from ctrlruntime.testing import Environment, eventually


def deployment() -> apps.Deployment:
    labels = {"app": "game"}
    containers = [core.Container(name=name, image=f"example.com/{name}:1") for name in ("game", "proxy")]
    template = core.PodTemplateSpec(metadata=meta.ObjectMeta(labels=labels), spec=core.PodSpec(containers=containers))
    spec = apps.DeploymentSpec(selector=meta.LabelSelector(match_labels=labels), template=template)
    return apps.Deployment(metadata=meta.ObjectMeta(name="game", namespace="game"), spec=spec)


async def run_the_examples(config: ctrl.Config) -> None:
    mgr = ctrl.new_manager(config, metrics_bind_address="0", cache=ctrl.CacheOptions(namespaces=["game"]))
    async with ctrl.running(mgr):
        client = mgr.client
        await client.create(core.Namespace(metadata=meta.ObjectMeta(name="game")))
        for level in (1, 2, 3):
            await save(client, "ada", level)
        assert await levels(client, "ada") == await levels(mgr.api_reader, "ada") == ["1", "2", "3"]
        assert await names_in_pages(mgr.api_reader, 2) == ["ada-1", "ada-2", "ada-3"]
        await preview(client)

        servers = await client.create(deployment())
        await set_image(client, servers, "proxy", "example.com/proxy:2")
        images = [container.image for container in servers.spec.template.spec.containers]
        assert sorted(images) == ["example.com/game:1", "example.com/proxy:2"]
        await scale_to(client, servers, 3)
        assert (await mgr.api_reader.get(apps.Deployment, servers.metadata)).spec.replicas == 3

        found = await client.get(core.ConfigMap, ctrl.NamespacedName("game", "ada-3"))
        await client.patch(found, archived(found))
        assert found.metadata.labels == {"archived-player": "ada"}

        document = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "imported", "namespace": "game"},
            "dta": {"level": "4"},
        }
        assert 'unknown field "dta"' in await import_save(client, document)
        document["data"] = document.pop("dta")
        assert not await import_save(client, document)

        failing = await fail_once(client)
        found.data["level"] = "5"
        try:
            await failing.update(found)
        except ctrl.Conflict:
            await failing.update(found)
        else:
            raise AssertionError("the first update did not fail")
        assert (await client.get(core.ConfigMap, found.metadata)).data["level"] == "5"

        assert await is_installed(mgr.mapper, "networking.k8s.io", "Ingress")
        assert not await is_installed(mgr.mapper, "cert-manager.io", "Certificate")

        lines: list[str] = []
        following = asyncio.create_task(follow(client, lines))
        await eventually(lambda: "ADDED ada-2" in lines)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

        assert await count_saves(config) == 2

        second = with_live_secrets(mgr.cluster)
        secret = core.Secret(metadata=meta.ObjectMeta(name="token", namespace="game"))
        await second.create(secret)
        await second.get(core.Secret, secret.metadata)
        assert ctrl.gvk_for(core.Secret) not in mgr.cache.informers()
        await save(second, "bob", 1)
        assert await levels(client, "bob") == ["1"]
        await save(client, "bob", 2)
        assert await levels(second, "bob") == ["1", "2"]
        assert read_report(mgr.cluster.gate).endswith("0 of them became live reads")


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
