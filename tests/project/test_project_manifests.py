"""Manifests of a whole package: what setup tells the manager becomes roles and webhooks."""

from __future__ import annotations

import pytest

from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.webhooks import Service
from ctrlruntime.project import Choice, crds_for_tests, load, manifests

API = """
    import ctrlruntime as ctrl
    from pydantic import Field

    class GameStatus(ctrl.Model):
        ready: int = 0

    class Game(ctrl.Object, group="g.example.com", version="v1"):
        status: GameStatus = Field(default_factory=GameStatus)

    class Player(ctrl.Object, group="g.example.com", version="v1", scope="Cluster"):
        name: str = ""
"""
HEAD = """
    import ctrlruntime as ctrl
    from ctrlruntime.api import apps, core
    from ctrlruntime.handler import enqueue_requests_from_map_func
    from .api import Game, Player

    async def reconcile(request): ...

"""


def setup(*lines: str) -> str:
    return HEAD + "    def setup(mgr):\n" + "".join(f"        {line}\n" for line in lines)


def granted(role):
    return {
        f"{group}/{resource}": " ".join(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def role(package, **modules):
    (found,) = manifests(load(package(api=API, **modules)), warn=lambda _: None).roles
    assert found["kind"] == "ClusterRole"
    return granted(found)


def test_permissions_follow_from_what_the_builder_is_told(package):
    assert role(
        package,
        controller=setup(
            "handler = enqueue_requests_from_map_func(lambda _: [])",
            "builder = ctrl.new_controller_managed_by(mgr).for_(Game).owns(apps.Deployment)",
            "builder.watches(core.Secret, handler).watches_metadata(core.Pod, handler).complete(reconcile)",
        ),
    ) == {
        "/pods": "get list watch",
        "/secrets": "get list watch",
        "apps/deployments": "create delete get list patch update watch",
        "g.example.com/games": "get list patch update watch",
        "g.example.com/games/status": "get patch update",
        "g.example.com/games/finalizers": "update",
    }


def test_a_kind_without_status_or_children_needs_neither(package):
    found = role(package, controller=setup("ctrl.new_controller_managed_by(mgr).for_(Player).complete(reconcile)"))

    assert found == {"g.example.com/players": "get list patch update watch"}


def test_a_raw_source_of_a_kind_is_watched(package):
    found = role(
        package,
        controller=setup(
            "source = ctrl.source.Kind(mgr.cache, core.Node, enqueue_requests_from_map_func(lambda _: []))",
            'ctrl.new_controller_managed_by(mgr).named("nodes").watches_raw_source(source).complete(reconcile)',
        ),
    )

    assert found == {"/nodes": "get list watch"}


def test_a_controller_made_by_hand_reads_what_it_watches(package):
    found = role(
        package,
        controller=setup(
            'controller = ctrl.Controller("players", reconcile, metrics=mgr.metrics, journal=mgr.journal)',
            "controller.watch(ctrl.source.Kind(mgr.cache, Player, ctrl.handler.EnqueueRequestForObject()))",
            "mgr.add(controller)",
        ),
    )

    assert found == {"g.example.com/players": "get list watch"}


BY_HAND = setup(
    'controller = ctrl.Controller("players", reconcile, metrics=mgr.metrics, journal=mgr.journal)',
    "mgr.add(controller)",
    "controller.watch(ctrl.source.Kind(mgr.cache, Player, ctrl.handler.EnqueueRequestForObject()))",
)


def test_a_watch_that_is_added_after_its_controller_counts(package):
    assert role(package, controller=BY_HAND) == {"g.example.com/players": "get list watch"}


def test_a_controller_made_by_hand_is_warned_of_until_somebody_says_what_it_writes(package):
    warnings = []
    writes = '    @ctrl.rbac(groups="g.example.com", resources="players", verbs="update")\n    async def also(): ...\n'

    manifests(load(package(api=API, controller=BY_HAND)), warn=warnings.append)
    manifests(load(package(api=API, controller=BY_HAND + writes)), warn=warnings.append)

    (warning,) = warnings
    assert "the controller players is created without a builder" in warning
    assert "@ctrl.rbac(" in warning


def test_an_operator_of_a_namespace_has_a_role_there_for_what_is_namespaced(package):
    controller = setup(
        "handler = enqueue_requests_from_map_func(lambda _: [])",
        "builder = ctrl.new_controller_managed_by(mgr).for_(Game).owns(apps.Deployment)",
        "builder.watches(core.Node, handler).complete(reconcile)",
        'mgr.event_recorder("game")',
    )

    found = manifests(load(package(api=API, controller=controller)), namespaces=["one", "two"]).roles

    assert [(each["kind"], each["metadata"].get("namespace")) for each in found] == [
        ("ClusterRole", None),
        ("Role", "one"),
        ("Role", "two"),
    ]
    assert granted(found[0]) == {"/nodes": "get list watch"}
    assert granted(found[1]) == granted(found[2])
    assert granted(found[1])["g.example.com/games/status"] == "get patch update"
    assert granted(found[1])["events.k8s.io/events"] == "create patch"


def test_what_rbac_says_about_a_resource_replaces_what_is_derived(package):
    narrow = '    @ctrl.rbac(groups="g.example.com", resources="players", verbs="get")\n    async def also(): ...\n'

    found = role(
        package, controller=setup("ctrl.new_controller_managed_by(mgr).for_(Player).complete(reconcile)") + narrow
    )

    assert found == {"g.example.com/players": "get list watch"}


def test_manifests_refuses_a_wrong_resource_in_rbac(package):
    wrong = '    @ctrl.rbac(groups="apps", resources="deployment", verbs="get")\n    async def also(): ...\n'

    with pytest.raises(GenerateError, match="did you mean 'deployments'"):
        role(package, controller=BY_HAND + wrong)


def test_a_recorder_needs_events(package):
    assert role(package, controller=setup('mgr.event_recorder("game")')) == {"events.k8s.io/events": "create patch"}


def test_an_election_has_a_role_of_its_own(package):
    election = 'import ctrlruntime as ctrl\nELECTION = ctrl.LeaderElection("game.example.com", namespace="zoo")'
    name = package(election=election)

    (found,) = manifests(load(name)).roles

    assert (found["kind"], found["metadata"]) == ("Role", {"name": "leader-election-role", "namespace": "zoo"})
    assert granted(found)["coordination.k8s.io/leases"] == "create get update"
    (named,) = manifests(load(name), role_name="game").roles
    assert named["metadata"]["name"] == "game-leader-election"


@pytest.mark.parametrize(
    ("options", "namespace"),
    [("", {}), ("SHARDING = ctrl.Sharding('game.example.com', namespace='zoo')", {"namespace": "zoo"})],
)
def test_a_sharded_controller_needs_the_leases_of_all_replicas(package, options, namespace):
    builder = "ctrl.new_controller_managed_by(mgr).for_(Game).with_options(sharded=True).complete(reconcile)"
    code = setup(builder) + (f"    {options}\n" if options else "")

    found = manifests(load(package(api=API, controller=code))).roles[-1]

    assert (found["kind"], found["metadata"]) == ("Role", {"name": "leader-election-role", **namespace})
    assert granted(found)["coordination.k8s.io/leases"] == "create delete get list update"


def test_a_certificate_in_a_secret_has_permissions_of_its_own(package):
    options = """
    import ctrlruntime as ctrl

    CERTIFICATES = ctrl.webhook.SecretCertificates(name="cert", namespace="zoo", service="hooks", validating=["v"])
    WEBHOOKS = ctrl.webhook.WebhookOptions(secret=CERTIFICATES)
    """

    cluster, namespaced = manifests(load(package(options=options))).roles

    assert granted(cluster) == {"admissionregistration.k8s.io/validatingwebhookconfigurations": "get update"}
    assert (namespaced["kind"], namespaced["metadata"]["namespace"]) == ("Role", "zoo")


WEBHOOKS = setup(
    "ctrl.new_webhook_managed_by(mgr).for_(Game).with_defaulter(Defaulter()).with_validator(Validator()).complete()",
).replace(
    "    def setup",
    """
    class Defaulter:
        async def default(self, game: Game) -> None: ...

    class Validator:
        async def validate_create(self, game: Game) -> None: ...
        async def validate_update(self, old: Game, new: Game) -> None: ...
        async def validate_delete(self, game: Game) -> None: ...

    def setup""",
)


def test_webhooks_are_those_setup_registers(package):
    name = package(api=API, controller=WEBHOOKS)

    mutating, validating = manifests(load(name), service=Service(name="game-webhooks", namespace="game")).webhooks

    assert (mutating["kind"], validating["kind"]) == ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    assert mutating["webhooks"][0]["clientConfig"]["service"] == {
        "name": "game-webhooks",
        "namespace": "game",
        "path": "/mutate-g-example-com-v1-game",
    }
    assert validating["webhooks"][0]["rules"][0]["resources"] == ["games"]


def test_files_stand_where_kubebuilder_has_them(package):
    files = manifests(load(package(api=API, controller=WEBHOOKS))).files()

    assert sorted(files) == [
        "crd/bases/g.example.com_games.yaml",
        "crd/bases/g.example.com_players.yaml",
        "webhook/manifests.yaml",
    ]
    assert all(text.startswith("---\n") for text in files.values())


def test_an_external_kind_has_no_crd_but_permissions(package):
    name = package(
        api=API.replace('scope="Cluster"', 'scope="Cluster", external=True'),
        controller=setup("ctrl.new_controller_managed_by(mgr).for_(Game).owns(Player).complete(reconcile)"),
    )

    made = manifests(load(name))

    assert [each["metadata"]["name"] for each in made.definitions] == ["games.g.example.com"]
    assert "g.example.com/players" in granted(made.roles[0])
    assert [each["metadata"]["name"] for each in crds_for_tests(load(name))] == [
        "games.g.example.com",
        "players.g.example.com",
    ]


def test_the_versions_of_a_kind_are_external_or_not(package):
    two = """
    import ctrlruntime as ctrl

    class Game(ctrl.Object, group="g.example.com", version="v1", storage=True): ...

    class GameV2(ctrl.Object, group="g.example.com", version="v2", kind="Game", external=True): ...
    """
    with pytest.raises(
        GenerateError, match=r"api\.GameV2: external is True, but not in Game, another version of the kind"
    ):
        manifests(load(package(api=two)))


def test_only_what_is_chosen_is_made(package):
    made = manifests(load(package(api=API, controller=WEBHOOKS)), choice=Choice(crd=False))

    assert sorted(made.files()) == ["webhook/manifests.yaml"]


V2 = """
    import ctrlruntime as ctrl

    class Game(ctrl.Object, group="g.example.com", version="v2", storage=True):
        pass
"""
CONVERSION = setup(
    "conversion = ctrl.webhook.Conversion(v2.Game).spoke(Game, to_hub=lambda game: game, from_hub=lambda game: game)",
    "ctrl.new_webhook_managed_by(mgr).for_(Game).with_conversion(conversion).complete()",
).replace("from .api", "from . import v2\n    from .api")


def games(made):
    return next(each["spec"] for each in made.definitions if each["spec"]["names"]["kind"] == "Game")


def test_two_versions_make_one_definition(package):
    spec = games(manifests(load(package(api=API, v2=V2))))

    assert [version["name"] for version in spec["versions"]] == ["v1", "v2"]
    assert "conversion" not in spec


def test_a_conversion_that_setup_registers_stands_in_the_definition(package):
    spec = games(manifests(load(package(api=API, v2=V2, controller=CONVERSION))))

    assert spec["conversion"]["strategy"] == "Webhook"
    assert spec["conversion"]["webhook"]["clientConfig"]["service"]["path"] == "/convert"


def test_a_hub_that_is_not_stored_is_warned_of(package):
    warnings = []
    through_v1 = CONVERSION.replace("Conversion(v2.Game).spoke(Game,", "Conversion(Game).spoke(v2.Game,")

    manifests(load(package(api=API, v2=V2, controller=CONVERSION)), warn=warnings.append)
    manifests(load(package(api=API, v2=V2, controller=through_v1)), warn=warnings.append)

    (warning,) = warnings
    assert "Game is converted through v1, but stored as v2" in warning


def test_a_version_that_the_conversion_does_not_know_is_refused(package):
    v3 = V2.replace('version="v2", storage=True', 'version="v3"')

    with pytest.raises(
        GenerateError, match=r"\.v3\.Game: version v3 of Game is missing in its conversion, which has v1, v2"
    ):
        manifests(load(package(api=API, v2=V2, v3=v3, controller=CONVERSION)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("raise KeyError('TOKEN')", r"\.controller\.setup failed \(controller\.py:\d+\): KeyError: 'TOKEN'"),
        ("ctrl.new_controller_managed_by(mgr).complete(reconcile)", "without for_.. it has no name"),
        ("import sys; sys.exit('no')", "setup failed .*SystemExit: no"),
    ],
)
def test_what_setup_raises_is_one_line_with_its_place(package, line, message):
    with pytest.raises(GenerateError, match=message) as refused:
        manifests(load(package(api=API, controller=setup(line))))

    assert "\n" not in str(refused.value)


def test_two_classes_for_one_kind_are_refused(package):
    with pytest.raises(GenerateError, match=r"Kind=Game is registered as "):
        manifests(load(package(api=API, again=API)))
