"""The webhook builder: what it registers, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.api import core
from ctrlruntime.errors import ConfigError, NotRegisteredError
from ctrlruntime.manager.manager import running
from ctrlruntime.testing import Environment, eventually


class GameSpec(ctrl.Model):
    image: str = ""


class Game(ctrl.Object, group="games.example.com", version="v1"):
    spec: GameSpec = Field(default_factory=GameSpec)


class OldGame(ctrl.Object, group="games.example.com", version="v1alpha1", kind="Game"):
    spec: GameSpec = Field(default_factory=GameSpec)


class Defaulter:
    async def default(self, game: Game) -> None:
        game.spec.image = "default"


class Validator:
    async def validate_update(self, old: Game, new: Game) -> None:
        raise ctrl.webhook.Denied("no")


CONVERSION = ctrl.webhook.Conversion(Game).spoke(
    OldGame, to_hub=lambda old: Game(spec=old.spec), from_hub=lambda new: OldGame(spec=new.spec)
)


@pytest.fixture
async def mgr() -> ctrl.Manager:
    config = ctrl.Config(host="http://127.0.0.1:1")
    return ctrl.new_manager(config, scheme=ctrl.Scheme(Game, OldGame), metrics_bind_address="0")


def builder(mgr: ctrl.Manager):
    return ctrl.new_webhook_managed_by(mgr).for_(Game)


async def test_webhooks_stand_at_kubebuilders_paths_with_their_rules(mgr):
    builder(mgr).with_defaulter(Defaulter()).with_validator(Validator()).with_conversion(CONVERSION).complete()

    mutating, validating, converting = mgr.webhook_server.registrations
    assert (mutating.path, mutating.rule.name, mutating.rule.operations) == (
        "/mutate-games-example-com-v1-game",
        "mgame-v1.kb.io",
        ("CREATE", "UPDATE"),
    )
    assert (validating.path, validating.rule.name, validating.rule.operations) == (
        "/validate-games-example-com-v1-game",
        "vgame-v1.kb.io",
        ("UPDATE",),
    )
    assert mutating.rule.mutating
    assert not validating.rule.mutating
    assert mutating.target.kind == validating.target.kind == "Game"
    assert (converting.path, converting.kind) == ("/convert", "conversion")
    assert [[info.version for info in versions] for versions in converting.converted] == [["v1", "v1alpha1"]]


async def test_options_of_a_webhook_reach_its_rule(mgr):
    builder(mgr).with_validator(
        Validator(),
        path="/mine",
        name="game.mine.example.com",
        operations=["CREATE", "DELETE"],
        failure_policy="Ignore",
        match_policy="Exact",
        side_effects="NoneOnDryRun",
        timeout_seconds=3,
        admission_review_versions=["v1", "v1beta1"],
        namespace_selector={"matchLabels": {"a": "b"}},
        match_conditions=[ctrl.webhook.MatchCondition("c", "true")],
        cached_kinds=[core.Pod],
    ).complete()

    (one,) = mgr.webhook_server.registrations
    assert one.path == "/mine"
    assert one.rule == ctrl.webhook.WebhookRule(
        mutating=False,
        name="game.mine.example.com",
        groups=["games.example.com"],
        versions=["v1"],
        resources=["games"],
        operations=["CREATE", "DELETE"],
        failure_policy="Ignore",
        match_policy="Exact",
        side_effects="NoneOnDryRun",
        timeout_seconds=3,
        admission_review_versions=["v1", "v1beta1"],
        namespace_selector={"matchLabels": {"a": "b"}},
        match_conditions=(ctrl.webhook.MatchCondition("c", "true"),),
    )


async def test_kinds_share_the_conversion_endpoint(mgr):
    class Thing(ctrl.Object, group="games.example.com", version="v1"):
        pass

    class OldThing(ctrl.Object, group="games.example.com", version="v1alpha1", kind="Thing"):
        pass

    mgr.scheme.register(Thing)
    other = ctrl.webhook.Conversion(Thing).spoke(OldThing, to_hub=lambda old: Thing(), from_hub=lambda new: OldThing())
    builder(mgr).with_conversion(CONVERSION).complete()
    ctrl.new_webhook_managed_by(mgr).for_(Thing).with_conversion(other).complete()

    (one,) = mgr.webhook_server.registrations
    assert [versions[0].kind for versions in one.converted] == ["Game", "Thing"]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda mgr: ctrl.new_webhook_managed_by(mgr).complete(), r"complete\(\) needs a kind"),
        (lambda mgr: ctrl.new_webhook_managed_by(mgr).with_defaulter(Defaulter()), r"with_defaulter\(\) needs a kind"),
        (lambda mgr: ctrl.new_webhook_managed_by(mgr).for_(Game()), "takes the class of a kind"),
        (lambda mgr: builder(mgr).for_(core.Pod), "this builder is for Game"),
        (lambda mgr: builder(mgr).complete(), "webhooks of Game: none is set"),
        (lambda mgr: builder(mgr).with_defaulter(Defaulter()).with_defaulter(Defaulter()), "a defaulter is set"),
        (lambda mgr: builder(mgr).with_validator(Defaulter()), "validates nothing"),
        (lambda mgr: builder(mgr).with_defaulter(Defaulter(), policy="Fail"), "unknown webhook option policy"),
        (lambda mgr: builder(mgr).with_defaulter(Defaulter(), name="game").complete(), "three lower-case labels"),
        (lambda mgr: builder(mgr).with_conversion(CONVERSION).with_conversion(CONVERSION), "a conversion already"),
        (
            lambda mgr: ctrl.new_webhook_managed_by(mgr).for_(core.Pod).with_conversion(CONVERSION),
            "not one of its versions",
        ),
        (lambda mgr: ctrl.new_webhook_managed_by(None), "a manager is needed"),
    ],
)
async def test_what_does_not_go_together_is_refused(mgr, build, message):
    with pytest.raises(ConfigError, match=message):
        build(mgr)


async def test_a_webhook_whose_path_is_taken_is_skipped_with_a_warning(mgr, capsys):
    builder(mgr).with_defaulter(Defaulter()).complete()
    builder(mgr).with_defaulter(Defaulter()).with_validator(Validator()).complete()

    paths = [one.path for one in mgr.webhook_server.registrations]
    assert paths == ["/mutate-games-example-com-v1-game", "/validate-games-example-com-v1-game"]
    assert "webhook skipped: path is already registered" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["mine", "/mine/", "/a b", "/a?b=c", "//a", "/ä"])
async def test_a_custom_path_that_is_none_is_refused(mgr, path):
    with pytest.raises(ConfigError, match="this is not a path"):
        builder(mgr).with_validator(Validator(), path=path).complete()
    assert mgr.webhook_server.registrations == ()


async def test_a_builder_completes_once(mgr):
    built = builder(mgr).with_defaulter(Defaulter())
    built.complete()
    with pytest.raises(ConfigError, match="has registered its webhooks"):
        built.complete()


async def test_a_kind_must_be_in_the_scheme():
    mgr = ctrl.new_manager(ctrl.Config(host="http://127.0.0.1:1"), metrics_bind_address="0")
    with pytest.raises(NotRegisteredError):
        builder(mgr).with_defaulter(Defaulter()).complete()
    assert mgr.webhook_server.registrations == ()


@pytest.mark.usefixtures("sets_up_log")
async def test_recovery_and_log_fields_are_the_builders_to_choose(mgr, capsys):
    ctrl.log.setup(ctrl.log.Options(encoder="console"))

    class Broken:
        async def default(self, game: Game) -> None:
            ctrl.get_logger("test").info("asked")
            raise ValueError("broken")

    (
        builder(mgr)
        .with_defaulter(Broken())
        .with_recover_panic(False)
        .with_log_constructor(lambda request: {"mine": request.operation})
        .complete()
    )
    request: dict[str, Any] = {"uid": "u", "operation": "CREATE", "object": Game().to_dict()}
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    admission = mgr.webhook_server._endpoints["/mutate-games-example-com-v1-game"]

    with pytest.raises(ValueError, match="broken"):
        await admission.answer(json.dumps(review).encode())
    assert "mine=CREATE" in capsys.readouterr().err


# The manager


@pytest.fixture(scope="module")
def environment():
    with Environment(backend="embedded") as found:
        yield found


def new_manager(environment: Environment, **options: Any) -> ctrl.Manager:
    config = ctrl.get_config(str(environment.kubeconfig_path))
    return ctrl.new_manager(config, scheme=ctrl.Scheme(Game), metrics_bind_address="0", **options)


async def test_a_manager_without_webhooks_has_no_webhook_server(environment):
    mgr = new_manager(environment, webhook=ctrl.webhook.WebhookOptions(cert_dir="/nowhere"))
    async with running(mgr):
        with pytest.raises(RuntimeError, match="the webhook server must be added before the manager starts"):
            _ = mgr.webhook_server
    assert "webhook" not in mgr.readiness


async def test_the_server_listens_before_the_caches_and_without_leadership(environment):
    options = ctrl.webhook.WebhookOptions(port=0, development=ctrl.webhook.DevelopmentMode())
    election = ctrl.LeaderElection("webhook-test", namespace="default")
    mgr = new_manager(environment, webhook=options, leader_election=election)
    had: list[tuple[bool, bool]] = []
    start = mgr.webhook_server.start

    async def note() -> None:
        await start()
        had.append((mgr.cache.is_running, mgr.elected.is_set()))

    mgr.webhook_server.start = note
    async with running(mgr):
        assert had == [(False, False)]
        assert mgr.webhook_server.port
        assert (await mgr.readiness.answer_one("webhook")).status == 200
    with pytest.raises(RuntimeError):
        _ = mgr.webhook_server.port


async def test_what_a_handler_reads_is_in_the_cache_before_the_manager_is_ready(environment):
    async def handle(request: ctrl.webhook.AdmissionRequest) -> ctrl.webhook.AdmissionResponse:
        return ctrl.webhook.allowed()

    mgr = new_manager(
        environment, webhook=ctrl.webhook.WebhookOptions(port=0, development=ctrl.webhook.DevelopmentMode())
    )
    mgr.webhook_server.register("/reads", ctrl.webhook.Admission(handle, cached_kinds=[core.ConfigMap]))
    async with running(mgr):

        async def is_ready() -> bool:
            return (await mgr.readiness.answer_one("webhook")).status == 200

        await eventually(is_ready)
        assert [str(gvk.kind) for gvk in mgr.cache.informers()] == ["ConfigMap"]
        assert not mgr.cache.unsynced()


async def test_a_manager_without_a_certificate_does_not_start(environment, tmp_path):
    mgr = new_manager(environment, webhook=ctrl.webhook.WebhookOptions(port=0, cert_dir=tmp_path))
    assert mgr.webhook_server.is_empty
    with pytest.raises(ConfigError, match="the webhook server has no certificate"):
        await mgr.start()
