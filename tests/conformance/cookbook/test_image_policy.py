from __future__ import annotations

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.testing import eventually
from examples.cookbook import image_policy


def pod(namespace: str, *images: str, init: str = "") -> core.Pod:
    containers = [core.Container(name=f"web-{number}", image=image) for number, image in enumerate(images)]
    init_containers = [core.Container(name="init", image=init)] if init else []
    spec = core.PodSpec(containers=containers, init_containers=init_containers)
    return core.Pod(metadata=meta.ObjectMeta(name="shop", namespace=namespace), spec=spec)


async def test_image_policy(operator, client, namespace, capsys):
    async def errors_of(made: core.Pod) -> list[tuple[str, str]]:
        try:
            await client.create(made, dry_run=True)
        except ctrl.Invalid as error:
            return [(cause.field, cause.message.split(": ", 2)[2]) for cause in error.causes]
        return []

    old = pod(namespace, "busybox")
    old.metadata.name = "blog"
    await client.create(old)
    async with operator(image_policy, webhooks=True):
        await eventually(lambda: errors_of(pod(namespace, "nginx")), timeout=LONGEST_WAIT)
        allowed = "registry.example.com, registry.k8s.io"
        assert await errors_of(
            pod(namespace, "registry.example.com/web:1", "docker.io/nginx:1.29", init="busybox")
        ) == [
            ("spec.initContainers[0].image", f"the registry docker.io is not one of {allowed}"),
            ("spec.initContainers[0].image", "the image needs a tag or a digest"),
            ("spec.containers[1].image", f"the registry docker.io is not one of {allowed}"),
        ]
        digest = "sha256:" + "0a" * 32
        assert await errors_of(pod(namespace, f"registry.example.com/web@{digest}", "registry.k8s.io/pause:3.10")) == []
        assert await errors_of(pod(namespace, "localhost:5000/web:1")) == [
            ("spec.containers[0].image", f"the registry localhost:5000 is not one of {allowed}")
        ]
        assert await errors_of(pod("kube-system", "busybox")) == []

        assert await errors_of(pod(namespace, "registry.example.com/web:latest")) == []
        assert "spec.containers[0].image: registry.example.com/web:latest can change" in "".join(capsys.readouterr())

        await client.patch(old, ctrl.merge_patch({"metadata": {"labels": {"team": "penguins"}}}))
        changed = {"spec": {"containers": [{"name": "web-0", "image": "nginx:1.29"}]}}
        with pytest.raises(ctrl.Invalid, match=r"the registry docker\.io is not one of"):
            await client.patch(old, ctrl.strategic_merge_patch(changed))
        debugger = core.EphemeralContainer(name="debugger", image="alpine")
        old.spec.ephemeral_containers.append(debugger)
        with pytest.raises(ctrl.Invalid, match=r"spec\.ephemeralContainers\[0\]\.image"):
            await client.subresource("ephemeralcontainers").update(old)
        await client.delete(old)
