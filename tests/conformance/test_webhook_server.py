"""An operator with webhooks of every sort, in development mode, on both servers: no certificate is given, nothing is registered by hand."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.certificates import make_authority
from ctrlruntime.install import CustomResourceDefinition
from ctrlruntime.manager.manager import running
from ctrlruntime.testing import eventually

GROUP = "games.webhooks.example.com"


class GameSpec(ctrl.Model):
    replicas: int = 0
    image: str = ""
    host: str = ""


class Game(ctrl.Object, group=GROUP, version="v1"):
    spec: GameSpec = Field(default_factory=GameSpec)


class OldGameSpec(ctrl.Model):
    size: int = 0
    image: str = ""
    host: str = ""


class OldGame(ctrl.Object, group=GROUP, version="v1alpha1", kind="Game"):
    spec: OldGameSpec = Field(default_factory=OldGameSpec)


def up(old: OldGame) -> Game:
    return Game(spec=GameSpec(replicas=old.spec.size, image=old.spec.image, host=old.spec.host))


def down(game: Game) -> OldGame:
    if game.spec.image == "unconvertible":
        raise ctrl.webhook.ConversionError("the image is unconvertible")
    return OldGame(spec=OldGameSpec(size=game.spec.replicas, image=game.spec.image, host=game.spec.host))


CONVERSION = ctrl.webhook.Conversion(Game).spoke(OldGame, to_hub=up, from_hub=down)


class GameDefaulter:
    def __init__(self) -> None:
        self.seen: list[ctrl.webhook.AdmissionRequest] = []

    async def default(self, game: Game, request: ctrl.webhook.AdmissionRequest) -> None:
        self.seen.append(request)
        game.spec.image = game.spec.image or "alexwhen/docker-2048"
        game.spec.host = game.spec.host or f"{game.metadata.name}.{request.namespace}.mygame.io"


class GameValidator:
    async def validate_create(self, game: Game) -> ctrl.webhook.Warnings | None:
        return self.validate(game)

    async def validate_update(self, old: Game, new: Game) -> ctrl.webhook.Warnings | None:
        if old.metadata.annotations.get("frozen") == "yes":
            raise ctrl.webhook.Denied("it is frozen")
        if old.spec.image != new.spec.image:
            raise ctrl.webhook.Denied("the image stays as it is")
        return self.validate(new)

    async def validate_delete(self, game: Game) -> None:
        if game.metadata.annotations.get("keep") == "yes":
            raise ctrl.webhook.Denied(f"{game.metadata.name} is to be kept")

    def validate(self, game: Game) -> ctrl.webhook.Warnings | None:
        errors = []
        if "*" in game.spec.host:
            errors.append(ctrl.webhook.FieldError.invalid("spec.host", game.spec.host, "a host has no *"))
        if game.spec.replicas > 9:
            errors.append(ctrl.webhook.FieldError.not_supported("spec.replicas", game.spec.replicas, [1, 2, 3]))
        if errors:
            raise ctrl.webhook.invalid(Game, game.metadata.name, errors)
        return ["that is a lot"] if game.spec.replicas > 5 else None


def version(name: str, *, storage: bool) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
    }


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"games.{GROUP}"},
    "spec": {
        "group": GROUP,
        "names": {"kind": "Game", "plural": "games", "singular": "game", "listKind": "GameList"},
        "scope": "Namespaced",
        "versions": [version("v1", storage=True), version("v1alpha1", storage=False)],
    },
}


class Sidecars:
    """Raw: appends a container and notes on the pod how many games there are."""

    def __init__(self, client: ctrl.Client) -> None:
        self.client = client

    async def handle(self, request: ctrl.webhook.AdmissionRequest) -> ctrl.webhook.AdmissionResponse:
        pod = request.decode(core.Pod)
        if pod.metadata.annotations.get("games") == "none":
            return ctrl.webhook.denied("a pod without games").with_warnings("think again")
        games = await self.client.list(Game, namespace=request.namespace)
        pod.metadata.annotations["games"] = str(len(games))
        if all(container.name != "sidecar" for container in pod.spec.containers):
            pod.spec.containers.append(core.Container(name="sidecar", image="sidecar"))
        return ctrl.webhook.patch_response(request, pod)


@pytest.fixture
def defaulter() -> GameDefaulter:
    return GameDefaulter()


@pytest.fixture
async def make_manager(server, namespace):
    config = ctrl.get_config(str(server.kubeconfig_path))

    def make(
        defaulter: GameDefaulter | None = None, *, lifetime: float = 86400.0, remove_unknown_fields: bool = False
    ) -> ctrl.Manager:
        mgr = ctrl.new_manager(
            config,
            scheme=ctrl.Scheme(Game, OldGame),
            cache=ctrl.CacheOptions(namespaces=[namespace]),
            metrics_bind_address="0",
            webhook=ctrl.webhook.WebhookOptions(port=0, development=ctrl.webhook.DevelopmentMode(lifetime=lifetime)),
        )
        here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        (
            ctrl.new_webhook_managed_by(mgr)
            .for_(Game)
            .with_defaulter(
                defaulter or GameDefaulter(),
                remove_unknown_fields=remove_unknown_fields,
                namespace_selector=here,
                admission_review_versions=["v1beta1", "v1"],
            )
            .with_validator(GameValidator(), namespace_selector=here)
            .with_conversion(CONVERSION)
            .complete()
        )
        rule = ctrl.webhook.WebhookRule(
            mutating=True, name="mpod.games.example.com", groups=[""], versions=["v1"], resources=["pods"],
            operations=["CREATE"], namespace_selector=here,
        )  # fmt: skip
        mgr.webhook_server.register(
            "/mutate-sidecar-pod", ctrl.webhook.Admission(Sidecars(mgr.client), cached_kinds=[Game]), webhook=rule
        )
        return mgr

    return make


@pytest.fixture
async def mgr(server, namespace, make_manager, defaulter) -> AsyncIterator[ctrl.Manager]:
    await asyncio.to_thread(server.install_crds, [DEFINITION])
    mgr = make_manager(defaulter)
    async with running(mgr):
        await registered(mgr, namespace)
        yield mgr


async def registered(mgr: ctrl.Manager, namespace: str) -> None:
    """Wait until the API server asks: it hears of new webhooks a moment later."""

    async def is_asked() -> bool:
        game = new_game(namespace, "probe", host="*")
        try:
            await mgr.client.create(game, dry_run=True)
        except ctrl.Invalid:
            return True
        except ctrl.errors.InternalError:
            return False  # it still asks where nobody answers any more
        return False

    await eventually(is_asked)

    async def is_converted() -> bool:
        """The definition's webhook is read by another part of the server, which may still hold the address of a process that is gone."""
        try:
            await mgr.client.create(new_game(namespace, "probe"), dry_run=True)
        except ctrl.errors.InternalError:
            return False
        return True

    await eventually(is_converted)

    async def is_asked_about_pods() -> bool:
        pod = new_pod(namespace, "probe")
        try:
            pod = await mgr.client.create(pod, dry_run=True)
        except ctrl.errors.InternalError:
            return False
        return "games" in pod.metadata.annotations

    await eventually(is_asked_about_pods)


def new_game(namespace: str, name: str, **spec: Any) -> Game:
    return Game(metadata=meta.ObjectMeta(namespace=namespace, name=name), spec=GameSpec(**spec))


def new_pod(namespace: str, name: str, **annotations: str) -> core.Pod:
    return core.Pod(
        metadata=meta.ObjectMeta(namespace=namespace, name=name, annotations=annotations),
        spec=core.PodSpec(containers=[core.Container(name="main", image="main")]),
    )


async def test_defaults_are_filled_in(mgr, namespace):
    game = await mgr.client.create(new_game(namespace, "g", replicas=1))

    assert game.spec.image == "alexwhen/docker-2048"
    assert game.spec.host == f"g.{namespace}.mygame.io"


async def test_fields_the_class_does_not_know_survive_a_default(mgr, server, namespace):
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/games"
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Game",
        "metadata": {"name": "g"},
        "spec": {"replicas": 0, "colour": {"red": [1, None, ""]}, "image": ""},
    }
    game = await asyncio.to_thread(server.connection.request, "POST", path, body)

    assert game["spec"]["colour"] == {"red": [1, None, ""]}
    assert game["spec"]["replicas"] == 0
    assert game["spec"]["image"] == "alexwhen/docker-2048"


async def test_fields_the_class_does_not_know_are_removed_with_the_option(server, namespace, make_manager):
    await asyncio.to_thread(server.install_crds, [DEFINITION])
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/games"
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Game",
        "metadata": {"name": "g"},
        "spec": {"replicas": 0, "colour": {"red": 1}},
    }
    mgr = make_manager(remove_unknown_fields=True)
    async with running(mgr):
        await registered(mgr, namespace)
        created = await asyncio.to_thread(server.connection.request, "POST", path, body)
        changed = {**created, "spec": {**created["spec"], "colour": "red", "replicas": 2}}
        updated = await asyncio.to_thread(server.connection.request, "PUT", f"{path}/g", changed)

    filled = {"image": "alexwhen/docker-2048", "host": f"g.{namespace}.mygame.io"}
    assert created["spec"] == {"replicas": 0, **filled}
    assert updated["spec"] == {"replicas": 2, **filled}


async def test_field_errors_are_an_invalid_status(mgr, namespace):
    with pytest.raises(ctrl.Invalid) as failed:
        await mgr.client.create(new_game(namespace, "g", host="*.io", replicas=10))

    assert str(failed.value) == (
        'admission webhook "vgame-v1.kb.io" denied the request: '
        f'Game.{GROUP} "g" is invalid: [spec.host: Invalid value: "*.io": a host has no *, '
        "spec.replicas: Unsupported value: 10: supported values: 1, 2, 3]"
    )
    assert [(cause.field, cause.reason) for cause in failed.value.causes] == [
        ("spec.host", "FieldValueInvalid"),
        ("spec.replicas", "FieldValueNotSupported"),
    ]
    assert failed.value.details["kind"] == "Game"


async def test_a_denied_update_is_forbidden_and_says_why(mgr, namespace):
    game = await mgr.client.create(new_game(namespace, "g", image="one"))

    game.spec.image = "two"
    with pytest.raises(ctrl.errors.Forbidden, match=r'"vgame-v1\.kb\.io" denied the request: the image stays as it is'):
        await mgr.client.update(game)


async def test_a_deleting_object_that_the_validator_refuses_goes_with_its_last_finalizer(mgr, namespace):
    game = new_game(namespace, "g", image="one")
    game.metadata.annotations["frozen"] = "yes"
    game.metadata.finalizers = ["example.com/one", "example.com/two"]
    game = await mgr.client.create(game)
    with pytest.raises(ctrl.errors.Forbidden, match="it is frozen"):
        await mgr.client.patch(game, ctrl.merge_patch({"metadata": {"finalizers": ["example.com/two"]}}))

    await mgr.client.delete(game)
    with pytest.raises(ctrl.errors.Forbidden, match="it is frozen"):
        await mgr.client.patch(game, ctrl.merge_patch({"spec": {"image": "two"}}))
    for left in (["example.com/two"], []):
        await mgr.client.patch(game, ctrl.merge_patch({"metadata": {"finalizers": left}}))

    assert await mgr.api_reader.get_or_none(Game, ctrl.object_key(game)) is None


async def test_a_delete_can_be_denied(mgr, namespace):
    game = await mgr.client.create(new_game(namespace, "g"))
    game = await mgr.client.patch(game, ctrl.merge_patch({"metadata": {"annotations": {"keep": "yes"}}}))

    with pytest.raises(ctrl.errors.Forbidden, match="g is to be kept"):
        await mgr.client.delete(game)
    await mgr.client.patch(game, ctrl.merge_patch({"metadata": {"annotations": {"keep": "no"}}}))
    await mgr.client.delete(game)

    assert await mgr.api_reader.get_or_none(Game, ctrl.object_key(game)) is None


async def test_warnings_reach_the_client(mgr, server, namespace):
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/games"
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Game", "metadata": {"name": "g"}, "spec": {"replicas": 6}}

    headers = await asyncio.to_thread(post_for_headers, server, path, body)

    assert '299 - "that is a lot"' in headers.get_all("Warning")


def post_for_headers(server, path: str, body: Any):
    connection = server.connection._open()
    try:
        headers = {**dict(server.connection.headers), "Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        answer.read()
        return answer.headers
    finally:
        connection.close()


async def test_a_raw_handler_reads_the_cache_and_patches_pods(mgr, namespace):
    await mgr.client.create(new_game(namespace, "g"))

    async def is_seen() -> bool:
        return len(await mgr.client.list(Game, namespace=namespace)) == 1

    await eventually(is_seen)
    pod = await mgr.client.create(new_pod(namespace, "p", other="1"))

    assert [container.name for container in pod.spec.containers] == ["main", "sidecar"]
    assert pod.metadata.annotations == {"other": "1", "games": "1"}
    with pytest.raises(ctrl.errors.Forbidden, match="a pod without games"):
        await mgr.client.create(new_pod(namespace, "q", games="none"))


@pytest.mark.parametrize("failure_policy", ["Ignore", "Fail"])
async def test_failure_policy_decides_after_a_handler_timed_out(server, namespace, failure_policy):
    seen: list[str] = []

    async def slow(request: ctrl.webhook.AdmissionRequest) -> ctrl.webhook.AdmissionResponse:
        seen.append(request.name)
        if request.name == "slow":
            await asyncio.Event().wait()
        return ctrl.webhook.allowed()

    mgr = ctrl.new_manager(
        ctrl.get_config(str(server.kubeconfig_path)),
        metrics_bind_address="0",
        webhook=ctrl.webhook.WebhookOptions(port=0, development=ctrl.webhook.DevelopmentMode()),
    )
    rule = ctrl.webhook.WebhookRule(
        mutating=False, name="slow.example.com", groups=[""], versions=["v1"], resources=["configmaps"],
        operations=["CREATE"], failure_policy=failure_policy, timeout_seconds=1,
        namespace_selector={"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    )  # fmt: skip
    mgr.webhook_server.register("/slow", ctrl.webhook.Admission(slow), webhook=rule)

    def config_map(name: str) -> core.ConfigMap:
        return core.ConfigMap(metadata=meta.ObjectMeta(namespace=namespace, name=name))

    async def is_called() -> bool:
        with contextlib.suppress(ctrl.errors.InternalError):  # the address of an earlier process
            await mgr.client.create(config_map("probe"), dry_run=True)
        return bool(seen)

    async with running(mgr):
        await eventually(is_called)
        if failure_policy == "Ignore":
            await mgr.client.create(config_map("slow"))
        else:
            with pytest.raises(
                ctrl.errors.InternalError, match=r'"slow\.example\.com".*the webhook did not decide within 0\.\d+ s'
            ):
                await mgr.client.create(config_map("slow"))
    assert "slow" in seen


async def test_a_dry_run_and_the_user_are_visible(mgr, namespace, defaulter):
    await mgr.client.create(new_game(namespace, "dry"), dry_run=True)

    request = next(one for one in defaulter.seen if one.name == "dry")
    assert request.dry_run
    assert request.user_info.username
    assert "system:masters" in request.user_info.groups
    assert request.operation == "CREATE"
    assert request.resource == (GROUP, "v1", "games")


async def test_objects_are_converted_both_ways(mgr, namespace):
    await mgr.client.create(new_game(namespace, "new", replicas=3, image="i"))
    old = OldGame(
        metadata=meta.ObjectMeta(namespace=namespace, name="old", labels={"a": "b"}), spec=OldGameSpec(size=2)
    )
    await mgr.client.create(old)

    async def converted() -> bool:
        found = await mgr.api_reader.get(OldGame, ctrl.NamespacedName(namespace, "new"))
        return found.spec.size == 3

    await eventually(converted)
    stored = await mgr.api_reader.get(Game, ctrl.NamespacedName(namespace, "old"))
    listed = await mgr.api_reader.list(OldGame, namespace=namespace)

    assert (stored.spec.replicas, stored.metadata.labels) == (2, {"a": "b"})
    # The webhooks are registered for v1 alone; the server asks them about an equivalent v1alpha1 all the same.
    assert stored.spec.image == "alexwhen/docker-2048"
    assert sorted(game.spec.size for game in listed) == [2, 3]


async def test_a_conversion_that_fails_says_which_object_and_why(mgr, namespace):
    await mgr.client.create(new_game(namespace, "bad", image="unconvertible"))

    async def failure() -> str:
        try:
            await mgr.api_reader.get(OldGame, ctrl.NamespacedName(namespace, "bad"))
        except ctrl.errors.APIStatusError as error:
            return str(error)
        return ""

    text = await eventually(failure)
    assert f"Game {namespace}/bad: the image is unconvertible" in text


async def test_the_registration_goes_with_the_manager(mgr, server, namespace, make_manager):
    kinds = {
        kind: ctrl.Unstructured.of("admissionregistration.k8s.io/v1", f"{kind}WebhookConfiguration")
        for kind in ("Mutating", "Validating")
    }
    name = ctrl.NamespacedName("", "development-mgame-v1.kb.io")
    present = [await mgr.api_reader.get_or_none(kind, name) for kind in kinds.values()]
    definition = ctrl.NamespacedName("", f"games.{GROUP}")
    converting = (await mgr.api_reader.get(CustomResourceDefinition, definition))["spec"]["conversion"]
    assert all(present)
    assert converting["strategy"] == "Webhook"

    mgr.stop()
    other = ctrl.Cluster(mgr.config)

    async def is_gone() -> bool:
        found = [await other.api_reader.get_or_none(kind, name) for kind in kinds.values()]
        back = (await other.api_reader.get(CustomResourceDefinition, definition))["spec"]["conversion"]
        return not any(found) and back == {"strategy": "None"}

    await eventually(is_gone)
    await other.close()


async def test_a_second_start_takes_over_what_a_killed_one_left(server, namespace, make_manager):
    await asyncio.to_thread(server.install_crds, [DEFINITION])
    killed = make_manager()
    killed.webhook_server._certificates.retire = left_behind
    async with running(killed):
        pass
    second = make_manager()
    async with running(second):
        await registered(second, namespace)

        game = await second.client.create(new_game(namespace, "g"))
        assert game.spec.image == "alexwhen/docker-2048"


async def left_behind() -> None:
    """What a process does that is killed: nothing."""


async def test_no_request_is_lost_while_the_certificate_is_renewed(mgr, namespace):
    server = mgr.webhook_server
    names = iter(range(500))
    renewals = 0

    async def create() -> None:
        for number in names:
            await mgr.client.create(new_game(namespace, f"g-{number}", replicas=1), dry_run=True)

    async def renew() -> None:
        nonlocal renewals
        while True:
            server._shown.show(server._certificates._issue())
            renewals += 1
            await asyncio.sleep(0.01)

    renewing = asyncio.ensure_future(renew())
    try:
        await asyncio.gather(*(create() for _ in range(20)))
    finally:
        renewing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await renewing

    assert renewals > 5
    assert next(names, None) is None


async def test_the_server_is_ready_when_it_answers(mgr):
    assert "webhook" in mgr.readiness
    answer = await mgr.readiness.answer_one("webhook")
    assert answer.status == 200

    host, port = mgr.webhook_server.address
    context = ssl.create_default_context(cadata=mgr.webhook_server._certificates._ca().pem.decode())
    _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname="127.0.0.1")
    writer.close()
    await writer.wait_closed()


async def test_the_real_server_believes_what_our_token_webhook_says(own_real_server, tmp_path):
    """The embedded server has no token webhooks: it is told its tokens."""

    async def authenticate(request: ctrl.webhook.TokenRequest) -> ctrl.webhook.TokenResponse:
        if request.token != "jane-s":
            return ctrl.webhook.unauthenticated("unknown")
        return ctrl.webhook.authenticated(ctrl.webhook.UserInfo("jane", groups=("system:masters",)), request.audiences)

    authority = make_authority("test")
    pair = authority.server(["127.0.0.1"])
    (tmp_path / "tls.crt").write_bytes(pair.certificate)
    (tmp_path / "tls.key").write_bytes(pair.key)
    webhooks = ctrl.webhook.WebhookServer(ctrl.webhook.WebhookOptions(host="127.0.0.1", port=0, cert_dir=tmp_path))
    webhooks.register("/authenticate", ctrl.webhook.TokenAuthentication(authenticate))
    await webhooks.start()
    ca = base64.b64encode(authority.pem).decode()
    cluster = {"server": f"https://127.0.0.1:{webhooks.port}/authenticate", "certificate-authority-data": ca}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "webhook", "cluster": cluster}],
        "contexts": [{"name": "webhook", "context": {"cluster": "webhook"}}],
        "current-context": "webhook",
    }
    (tmp_path / "webhook.json").write_text(json.dumps(config))
    arguments = [
        f"--authentication-token-webhook-config-file={tmp_path / 'webhook.json'}",
        "--authentication-token-webhook-version=v1",
    ]
    environment = own_real_server(apiserver_args=arguments)
    try:
        await asyncio.to_thread(environment.start)
        connection = environment.connection
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

        connection.headers = [("Authorization", "Bearer jane-s")]
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection.tls = context  # without the administrator's client certificate
        known = await asyncio.to_thread(connection.request, "POST", path, review)
        connection.headers = [("Authorization", "Bearer somebody-s")]
        with pytest.raises(ctrl.errors.Unauthorized):
            await asyncio.to_thread(connection.request, "POST", path, review)
    finally:
        await asyncio.to_thread(environment.stop)
        await webhooks.stop()

    assert known["status"]["userInfo"]["username"] == "jane"
    assert "system:masters" in known["status"]["userInfo"]["groups"]
