"""The Game example inside this process, built both ways, on both servers; webhooks are on, with certificates made for the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import ctrlruntime as ctrl
from ctrlruntime.api import apps, core, meta, networking
from ctrlruntime.api.autoscaling.v1 import Scale
from ctrlruntime.manager.manager import running
from ctrlruntime.testing import eventually
from ctrlruntime.testing.audit import Recorder, compare, read_roles
from examples.game.api import Game, GameSpec
from examples.game.controller import LABEL, setup

CONFIG = Path(__file__).parents[2] / "examples" / "game" / "config"
CHILDREN = (apps.Deployment, core.Service, networking.Ingress)


@pytest.fixture(autouse=True)
def _role_has_it_all() -> Iterator[None]:
    """Whatever a test makes the operator do, its generated role allows."""
    with Recorder() as recorder:
        yield
    assert compare(recorder.used, read_roles([CONFIG / "rbac" / "role.yaml"])).missing == ()


@pytest.fixture(params=["short way", "long way"])
async def mgr(request, server, namespace, nodes) -> AsyncIterator[ctrl.Manager]:
    mgr = ctrl.new_manager(
        ctrl.get_config(str(server.kubeconfig_path)),
        scheme=ctrl.Scheme(Game),
        cache=ctrl.CacheOptions(namespaces=[namespace]),
        metrics_bind_address="0",
        webhook=ctrl.webhook.WebhookOptions(port=0, development=ctrl.webhook.DevelopmentMode()),
    )
    await ctrl.install_crds(mgr.cluster.unfenced_client(), CONFIG / "crd")
    setup(mgr, long_way=request.param == "long way")
    async with running(mgr):
        await eventually(lambda: host_is_refused(mgr, namespace))
        yield mgr


async def host_is_refused(mgr: ctrl.Manager, namespace: str) -> bool:
    """Say whether the API server asks the webhooks: it hears of them a moment after they are registered."""
    try:
        await mgr.client.create(new_game("probe", namespace, host="*.io"), dry_run=True)
    except ctrl.Invalid:
        return True
    return False


def new_game(name: str, namespace: str, **spec) -> Game:
    return Game(metadata=meta.ObjectMeta(name=name, namespace=namespace), spec=GameSpec(**spec))


@pytest.fixture
async def game(mgr, namespace) -> Game:
    return await mgr.client.create(new_game("g", namespace, replicas=2))


async def runs(mgr: ctrl.Manager, game: Game, count: int) -> Game:
    """Wait until the Game runs with `count` ready pods."""

    async def look() -> Game | None:
        found = await mgr.api_reader.get(Game, ctrl.object_key(game))
        status = found.status
        return found if (status.phase, status.replicas, status.ready_replicas) == ("Running", count, count) else None

    return await eventually(look)


async def test_a_game_gets_three_children_it_controls(mgr, game):
    found = await runs(mgr, game, 2)

    assert found.spec.image == "alexwhen/docker-2048"
    assert found.spec.host == f"g.{game.metadata.namespace}.mygame.io"
    assert found.status.label_selector == f"{LABEL}=g"
    children = [await mgr.api_reader.get(kind, ctrl.object_key(game)) for kind in CHILDREN]
    for child in children:
        [owner] = child.metadata.owner_references
        assert (owner.kind, owner.name, owner.uid) == ("Game", "g", game.metadata.uid)
        assert owner.controller
        assert owner.block_owner_deletion
    deployment, service, ingress = children
    assert deployment.spec.replicas == 2
    assert deployment.spec.template.spec.containers[0].image == found.spec.image
    assert service.spec.selector == deployment.spec.selector.match_labels
    assert [rule.host for rule in ingress.spec.rules] == [found.spec.host]
    assert ingress.spec.rules[0].http.paths[0].backend.service.name == service.metadata.name


@pytest.mark.parametrize("kind", CHILDREN)
async def test_a_deleted_child_comes_back(mgr, game, kind):
    await runs(mgr, game, 2)
    first = await mgr.api_reader.get(kind, ctrl.object_key(game))

    await mgr.client.delete(first)

    async def is_another() -> bool:
        present = await mgr.api_reader.get_or_none(kind, ctrl.object_key(game))
        return present is not None and present.metadata.uid != first.metadata.uid

    await eventually(is_another)
    await runs(mgr, game, 2)


async def test_edited_children_are_mended(mgr, game):
    await runs(mgr, game, 2)
    deployment, service, ingress = [await mgr.api_reader.get(kind, ctrl.object_key(game)) for kind in CHILDREN]

    container = {"name": "game", "image": "nginx"}
    template = {"spec": {"containers": [container]}}
    await mgr.client.patch(deployment, ctrl.strategic_merge_patch({"spec": {"replicas": 5, "template": template}}))
    await mgr.client.patch(service, ctrl.merge_patch({"spec": {"selector": {"other": "one"}}}))
    await mgr.client.patch(ingress, ctrl.json_patch([{"op": "replace", "path": "/spec/rules/0/host", "value": "a.io"}]))

    async def are_as_before() -> bool:
        present = [await mgr.api_reader.get(kind, ctrl.object_key(game)) for kind in CHILDREN]
        return (
            present[0].spec.replicas == 2
            and present[0].spec.template.spec.containers[0].image == "alexwhen/docker-2048"
            and present[1].spec.selector == {LABEL: "g"}
            and present[2].spec.rules[0].host == game.spec.host
        )

    await eventually(are_as_before)
    await runs(mgr, game, 2)


async def test_scale_is_a_subresource_and_the_deployment_follows(mgr, game):
    await runs(mgr, game, 2)

    scale = await mgr.client.subresource("scale").get(game, Scale)
    assert (scale.spec.replicas, scale.status.replicas, scale.status.selector) == (2, 2, f"{LABEL}=g")
    scale.spec.replicas = 3
    await mgr.client.subresource("scale").update(game, body=scale)

    await runs(mgr, game, 3)
    deployment = await mgr.api_reader.get(apps.Deployment, ctrl.object_key(game))
    assert deployment.spec.replicas == 3


async def test_spec_changes_are_followed(mgr, game):
    await runs(mgr, game, 2)

    await mgr.client.patch(game, ctrl.merge_patch({"spec": {"image": "nginx", "host": "b.io"}}))

    async def is_followed() -> bool:
        deployment = await mgr.api_reader.get(apps.Deployment, ctrl.object_key(game))
        ingress = await mgr.api_reader.get(networking.Ingress, ctrl.object_key(game))
        return deployment.spec.template.spec.containers[0].image == "nginx" and ingress.spec.rules[0].host == "b.io"

    await eventually(is_followed)


async def test_a_host_with_a_star_is_refused_at_create_and_update(mgr, namespace):
    game = await mgr.client.create(new_game("s", namespace))

    with pytest.raises(ctrl.Invalid) as at_create:
        await mgr.client.create(new_game("t", namespace, host="*.io"))
    with pytest.raises(ctrl.Invalid) as at_update:
        await mgr.client.patch(game, ctrl.merge_patch({"spec": {"host": "*.io"}}))

    for name, failed in (("t", at_create), ("s", at_update)):
        assert str(failed.value) == (
            'admission webhook "vgame-v1.kb.io" denied the request: '
            f'Game.myapp.qingwave.github.io "{name}" is invalid: spec.host: Invalid value: "*.io": must not contain *'
        )
        assert [(cause.field, cause.reason) for cause in failed.value.causes] == [("spec.host", "FieldValueInvalid")]


async def test_replicas_are_one_by_default_and_never_fewer(mgr, namespace):
    def bare(**spec) -> ctrl.Unstructured:
        metadata = {"name": "d", "namespace": namespace}
        return ctrl.Unstructured.from_dict(
            {"apiVersion": "myapp.qingwave.github.io/v1", "kind": "Game", "metadata": metadata, **spec}
        )

    # The defaulter is asked before the schema is, and cannot read such a Game: 400 then, and 422 without webhooks.
    with pytest.raises(ctrl.errors.APIStatusError, match=r"spec\.replicas: .*greater than or equal to 1"):
        await mgr.client.create(bare(spec={"replicas": 0}))
    made = await mgr.client.create(bare())

    assert made["spec"] == {"replicas": 1, "image": "alexwhen/docker-2048", "host": f"d.{namespace}.mygame.io"}


async def test_a_deleted_game_takes_its_children_with_it(mgr, game, namespace):
    await runs(mgr, game, 2)

    await mgr.client.delete(game)

    async def all_gone() -> bool:
        kinds = (Game, *CHILDREN, apps.ReplicaSet, core.Pod)
        return not any([len(await mgr.api_reader.list(kind, namespace=namespace)) for kind in kinds])

    # kube-controller-manager's collector looks for new kinds every 30 s; a definition installed a moment ago may have to wait for that.
    await eventually(all_gone)
