"""From an empty folder to a cluster and out of it again: the SidecarSet and Game projects, by the commands of their manuals.

Without `--all` one runs on the real server and the other on the embedded one. `test_project_in_cluster.py` runs each command on both.
Nothing of the checkout is used but the built wheel, and the examples' code, which takes the place of the scaffolded one.
"""

from __future__ import annotations

import json

import pytest
import yaml
from example_process import ROOT, needs_kubectl
from scaffolded import InCluster, Shell, everything_of, forks_of_wheel, unpacked_wheel

from ctrlruntime.testing import eventually

THIRD_PARTY = ROOT / "tests/project/third_party"
HASH = "chinalhr.github.io/sidecar-hash"

pytestmark = [needs_kubectl, pytest.mark.slow]


def on_servers(*, always, thorough):
    servers = [always, pytest.param(thorough, marks=pytest.mark.thorough)]
    return pytest.mark.parametrize("server", servers, indirect=True, scope="session")


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    return unpacked_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def wheel_forks(site):
    with forks_of_wheel(site) as forks:
        yield forks


@pytest.fixture(scope="module")
def third_party(server):
    names = server.install_crds(THIRD_PARTY)
    yield
    server.uninstall_crds(names)


@pytest.fixture
def shell(server, site, wheel_forks, tmp_path, third_party, nodes):
    return Shell(tmp_path, site, server.kubeconfig_path, wheel_forks)


@pytest.fixture
def operator(server, shell):
    """Makes the deployed operator; it does not outlive the test, and neither does what it was deployed with."""
    made = []

    def make(project):
        made.append(InCluster(server, shell, project))
        return made[-1]

    yield make
    for each in made:
        each.stop()
        shell.try_ctrl("undeploy", "--yes", "--remove-finalizers", "--ignore-not-found")


def assert_generated(shell, example, group_of_files):
    """The project's generated files mean what the example's do, whose own tests hold them."""
    for name in group_of_files:
        ours = yaml.safe_load((ROOT / f"examples/{example}/config" / name).read_text())
        theirs = yaml.safe_load((shell.folder / "config" / name).read_text())
        assert theirs == ours


def rendered_alike(shell):
    file = shell.folder.with_suffix(".yaml")
    file.write_text(shell.kubectl("kustomize", "config/default"))
    assert shell.ctrl("render", "--compare", str(file)) == ""


@on_servers(always="real", thorough="embedded")
async def test_sidecarset_from_nothing(shell, operator):
    shell.ctrl("init", "--domain", "chinalhr.github.io", "--project-name", "sidecarset", "--license", "none")
    kind = ("--group", "apps", "--version", "v1alpha1", "--kind", "SidecarSet")
    shell.ctrl("create", "api", *kind, "--cluster-scoped", "--resource", "--controller")
    shell.ctrl("create", "webhook", *kind, "--defaulting", "--programmatic-validation")
    modules = {
        "examples.sidecarset.api": "sidecarset.api.v1alpha1.sidecarset",
        "examples.sidecarset.webhook": "sidecarset.webhooks.v1alpha1.sidecarset",
    }
    shell.drop_in("sidecarset/api.py", "sidecarset/api/v1alpha1/sidecarset.py", modules)
    shell.drop_in(
        "sidecarset/controller.py", "sidecarset/controllers/sidecarset.py", modules, setup="SidecarSetReconciler"
    )
    shell.drop_in(
        "sidecarset/webhook.py", "sidecarset/webhooks/v1alpha1/sidecarset.py", modules, setup="register_webhooks"
    )
    shell.ctrl("manifests")
    shell.ctrl("manifests", "--check")
    assert_generated(shell, "sidecarset", ["crd/bases/apps.chinalhr.github.io_sidecarsets.yaml"])
    # Pods of the operator itself are not to wait for its own webhook.
    overlay = shell.folder / "config/overlays/test"
    overlay.mkdir(parents=True)
    patch = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "sidecarset-mutating-webhook-configuration"},
        "webhooks": [
            {
                "name": "msidecar-pod.kb.io",
                "namespaceSelector": {
                    "matchExpressions": [
                        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["sidecarset-system"]}
                    ]
                },
            }
        ],
    }
    (overlay / "kustomization.yaml").write_text(
        yaml.safe_dump({"resources": ["../../default"], "patches": [{"patch": yaml.safe_dump(patch)}]})
    )
    rendered_alike(shell)

    said = shell.ctrl(
        "deploy",
        "config/overlays/test",
        "--no-wait",
        "--force-conflicts",
        "--image",
        "registry.example.com/sidecarset:v1",
    )
    assert "sidecarset-controller-manager" in said
    running = operator("sidecarset")
    running.start()
    await running.says("starting workers")

    sidecars = {
        "apiVersion": "apps.chinalhr.github.io/v1alpha1",
        "kind": "SidecarSet",
        "metadata": {"name": "mine"},
        "spec": {
            "selector": {"matchLabels": {"from": "nothing"}},
            "containers": [{"name": "logs", "image": "busybox:1"}],
        },
    }
    refused = sidecars | {"spec": sidecars["spec"] | {"selector": {}}}

    def refusal():
        done = shell.try_run(["kubectl", "create", "-f", "-", "--dry-run=server"], stdin=json.dumps(refused))
        return "spec.selector: Required value" in done.stderr

    await eventually(refusal, interval=0.2)
    shell.kubectl("apply", "-f", "-", stdin=json.dumps(sidecars))
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "with-sidecar", "namespace": "default", "labels": {"from": "nothing"}},
        "spec": {"containers": [{"name": "main", "image": "main:1"}]},
    }

    def injected():
        made = shell.kubectl("create", "-f", "-", "--dry-run=server", "-o", "json", stdin=json.dumps(pod))
        return [each["name"] for each in json.loads(made)["spec"]["containers"]] == ["main", "logs"]

    await eventually(injected, interval=0.2)
    shell.kubectl("create", "-f", "-", stdin=json.dumps(pod))

    shell.kubectl("wait", "sidecarset/mine", "--for=jsonpath={.status.readyPods}=1", "--timeout=120s")
    assert shell.kubectl("get", "sidecarset", "mine", "--no-headers").split() == ["mine", "1", "1", "1"]
    shell.kubectl("delete", "pod", "with-sidecar", "-n", "default", "--grace-period", "0", "--force")

    assert "forbidden" not in running.log.read_text()  # the generated roles are enough
    shell.ctrl("undeploy", "--yes")
    assert everything_of(shell, "sidecarset", "chinalhr.github.io") == []


@on_servers(always="embedded", thorough="real")
async def test_game_from_nothing(shell, operator):
    shell.ctrl("init", "--domain", "qingwave.github.io", "--project-name", "game")
    kind = ("--group", "myapp", "--version", "v1", "--kind", "Game")
    shell.ctrl("create", "api", *kind)
    shell.ctrl("create", "webhook", *kind, "--defaulting", "--validation")
    modules = {"examples.game.api": "game.api.v1.game", "examples.game.webhook": "game.webhooks.v1.game"}
    shell.drop_in("game/api.py", "game/api/v1/game.py", modules)
    shell.drop_in("game/controller.py", "game/controllers/game.py", modules, setup="GameReconciler")
    shell.drop_in("game/webhook.py", "game/webhooks/v1/game.py", modules, setup="register_webhooks")
    shell.ctrl("manifests")
    assert_generated(shell, "game", ["crd/bases/myapp.qingwave.github.io_games.yaml"])
    rendered_alike(shell)

    shell.ctrl("deploy", "--no-wait", "--force-conflicts")  # the webhooks are trusted once the test plays cert-manager
    running = operator("game")
    running.start()
    await running.says("starting workers")
    game = {
        "apiVersion": "myapp.qingwave.github.io/v1",
        "kind": "Game",
        "metadata": {"name": "blocks", "namespace": "default"},
        "spec": {},
    }

    def applied():
        return shell.try_run(["kubectl", "apply", "-f", "-"], stdin=json.dumps(game)).returncode == 0

    await eventually(applied, interval=0.2)
    refused = shell.try_run(["kubectl", "apply", "-f", "-"], stdin=json.dumps(game | {"spec": {"host": "*.x"}}))
    assert "must not contain *" in refused.stderr

    def runs(replicas):
        row = shell.kubectl("get", "games.myapp.qingwave.github.io", "blocks", "-n", "default", "--no-headers").split()
        return row[1:-1] == ["Running", "blocks.default.mygame.io", *[str(replicas)] * 3]

    await eventually(lambda: runs(1), interval=0.3)
    shell.kubectl("scale", "games.myapp.qingwave.github.io", "blocks", "-n", "default", "--replicas", "2")
    await eventually(lambda: runs(2), interval=0.3)

    assert "forbidden" not in running.log.read_text()
    shell.ctrl("undeploy", "--yes")
    assert everything_of(shell, "game", "qingwave.github.io") == []
