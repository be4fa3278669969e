"""Operators that were installed from their bundles, with the permissions of their ClusterServiceVersions and no others, on both servers."""

from __future__ import annotations

import secrets
import shutil
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml
from example_bundles import EXAMPLES, bundle_of, run
from installed_operator import InstalledOperator
from installing import kubeconfig_of
from olm_definitions import olm_definitions
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import apps, core, meta, networking, rbac
from ctrlruntime.errors import Forbidden, Invalid
from ctrlruntime.operatorlib import ConditionNotSetError, OperatorCondition, OperatorConditionFactory
from ctrlruntime.testing import eventually
from examples.game.api import Game
from examples.memcached.api import Memcached

pytestmark = pytest.mark.usefixtures("nodes", "definitions")


@pytest.fixture(scope="module")
def definitions(server):
    names = server.install_crds(olm_definitions())
    yield
    server.uninstall_crds(names)


@pytest.fixture
async def connect(server):
    """Makes a client from a kubeconfig; without one it is the administrator's."""
    clusters = []

    def client(path=server.kubeconfig_path):
        config = ctrl.get_config(str(path))
        clusters.append(ctrl.Cluster(config, scheme=ctrl.Scheme(Memcached, Game, OperatorCondition)))
        return clusters[-1].unfenced_client()

    yield client
    for each in clusters:
        await each.close()


@pytest.fixture
def admin(connect):
    return connect()


@pytest.fixture
async def install(server, admin, namespace, tmp_path, example_forks):
    """Installs the bundle of a project into the namespace of the test."""
    made = []

    async def installed(project, **options):
        bundle = bundle_of(project, tmp_path)
        made.append(InstalledOperator(server, admin, bundle, tmp_path, example_forks, namespace=namespace, **options))
        await made[-1].install()
        return made[-1]

    yield installed
    for each in made:
        await each.remove()


@pytest.fixture
def namespaces(new_namespace):
    """Two more namespaces."""
    return [new_namespace() for _ in range(2)]


def memcached(namespace, size=2):
    return Memcached(metadata={"name": "mine", "namespace": namespace}, spec={"size": size})


async def runs(admin, obj):
    """Wait for the Pods of a Memcached, by its status and its Deployment's."""

    async def is_met():
        found = await admin.get(Memcached, ctrl.object_key(obj))
        deployment = await admin.get(apps.Deployment, ctrl.object_key(obj))
        return len(found.status.nodes) == deployment.status.ready_replicas == obj.spec.size

    await eventually(is_met, timeout=LONGEST_WAIT, interval=0.1)


async def test_what_a_csv_permits_is_enough_and_the_operator_is_upgradeable(
    install, connect, admin, namespaces, tmp_path
):
    # Without what OLM adds to Roles when it targets all namespaces: the cluster permissions alone have to do.
    operator = await install(EXAMPLES / "memcached", is_lifted=False)
    operator.start("examples.memcached")

    obj = await admin.create(memcached(namespaces[0]))
    await runs(admin, obj)
    await admin.patch(obj, ctrl.merge_patch({"spec": {"size": 1}}))
    await runs(admin, obj)

    client = connect(operator.kubeconfig)
    assert operator.variables["OPERATOR_CONDITION_NAME"] == "memcached-operator.v0.0.1"
    (tmp_path / "namespace").write_text(operator.installation.namespace)
    conditions = OperatorConditionFactory(client, environ=operator.variables, namespace_file=tmp_path / "namespace")
    upgradeable = conditions.condition("Upgradeable")
    with pytest.raises(ConditionNotSetError):
        await upgradeable.get()
    await upgradeable.set(True, reason="Settled", message="nothing is being moved")
    stored = await admin.get(OperatorCondition, conditions.key)
    assert [(each.type, each.status) for each in stored.spec.conditions] == [("Upgradeable", "True")]
    assert stored.spec.deployments == ["memcached-operator-controller-manager"]
    with pytest.raises(Forbidden, match="operatorconditions"):
        await client.list(OperatorCondition, namespace=operator.installation.namespace)
    with pytest.raises(Forbidden, match="secrets"):
        await client.list(core.Secret, namespace=operator.installation.namespace)
    operator.assert_all_was_allowed()


async def test_metrics_are_for_whom_the_bundles_role_permits(install, server, admin, namespace):
    operator = await install(EXAMPLES / "memcached", is_lifted=False)
    operator.start("examples.memcached")
    for name in ("prometheus", "passer-by"):
        await admin.create(core.ServiceAccount(metadata={"name": name, "namespace": namespace}))
    role = rbac.RoleRef(
        api_group="rbac.authorization.k8s.io", kind="ClusterRole", name="memcached-operator-metrics-reader"
    )
    subject = rbac.Subject(kind="ServiceAccount", name="prometheus", namespace=namespace)
    binding = rbac.ClusterRoleBinding(metadata={"name": f"reader-{namespace}"}, role_ref=role, subjects=[subject])
    operator.made.append(await admin.create(binding))

    def status(account):
        config = yaml.safe_load(kubeconfig_of(server, namespace, account))
        request = urllib.request.Request(
            f"https://127.0.0.1:{operator.metrics_port}/metrics",
            headers={"Authorization": f"Bearer {config['users'][0]['user']['token']}"},
        )
        try:
            with urllib.request.urlopen(
                request, context=ssl._create_unverified_context(), timeout=LONGEST_WAIT
            ) as answer:
                return answer.status
        except urllib.error.HTTPError as refused:
            refused.close()
            return refused.code

    await eventually(lambda: status("prometheus") == 200, timeout=LONGEST_WAIT)
    assert status("passer-by") == 403


@pytest.mark.parametrize("targets", [1, 0], ids=["one namespace", "all namespaces"])
async def test_an_operator_of_some_namespaces_looks_at_its_targets_alone(install, admin, namespaces, tmp_path, targets):
    target, other = namespaces
    operator = await install(namespaced(tmp_path / "project"), targets=(target, "default")[: 2 * targets])
    elsewhere = await admin.create(memcached(other))
    operator.start("examples.memcached")

    assert operator.variables["WATCH_NAMESPACE"] == (f"{target},default" if targets else "")
    await runs(admin, await admin.create(memcached(target)))
    if targets:
        assert await admin.get_or_none(apps.Deployment, ctrl.object_key(elsewhere)) is None
    else:
        await runs(admin, elsewhere)
    operator.assert_all_was_allowed()


def namespaced(project):
    """Make a project whose operator works in some namespaces out of an example."""
    shutil.copytree(EXAMPLES / "memcached", project, ignore=shutil.ignore_patterns("bundle*", "__pycache__"))
    settings = project / "pyproject.toml"
    text = settings.read_text()
    assert "namespaced = false" in text
    assert 'source-dir = "../.."' in text
    source = Path(*[".."] * (len(project.parts) - 1), *EXAMPLES.parent.parts[1:])
    text = text.replace("namespaced = false", "namespaced = true").replace('"../.."', f'"{source.as_posix()}"')
    settings.write_text(text)
    run("manifests", "--project", str(project))
    return project


async def test_the_webhooks_of_a_csv_answer_and_the_operator_does_its_work(install, admin, namespaces):
    operator = await install(EXAMPLES / "game", is_lifted=False)
    operator.start("examples.game")
    mine = {"name": "mine", "namespace": namespaces[0]}

    async def is_filled_in():
        return (await admin.create(Game(metadata=mine), dry_run=True)).spec.host == f"mine.{namespaces[0]}.mygame.io"

    await eventually(is_filled_in, timeout=LONGEST_WAIT)
    with pytest.raises(Invalid, match=r"must not contain \*"):
        await admin.create(Game(metadata=mine, spec={"host": "*.io"}))
    game = await admin.create(Game(metadata=mine, spec={"replicas": 2}))

    async def is_running(count):
        found = await admin.get(Game, ctrl.object_key(game))
        return (found.status.phase, found.status.replicas, found.status.ready_replicas) == ("Running", count, count)

    await eventually(lambda: is_running(2), timeout=LONGEST_WAIT, interval=0.1)
    await admin.patch(game, ctrl.merge_patch({"spec": {"replicas": 1, "host": "mine.example.com"}}))
    await eventually(lambda: is_running(1), timeout=LONGEST_WAIT, interval=0.1)
    ingress = await admin.get(networking.Ingress, ctrl.object_key(game))
    assert ingress.spec.rules[0].host == "mine.example.com"
    operator.assert_all_was_allowed()


@pytest.fixture(scope="session")
def project_of_two_versions(tmp_path_factory):
    """The folder of a scaffolded project of a kind in two versions, whose field has another name in the second."""
    name = f"shop{secrets.token_hex(3)}"
    root = tmp_path_factory.mktemp("converting") / name
    root.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(sys, "dont_write_bytecode", True)
        run("init", "--domain", f"{name}.example.com", "--project-name", name)
        cart = ("--group", "webapp", "--kind", "Cart")
        run("create", "api", *cart, "--version", "v1")
        run("create", "api", *cart, "--version", "v2", "--no-controller")
        run("create", "webhook", *cart, "--version", "v1", "--conversion", "--spoke", "v2")
        for file, old, new in (
            ("api/v2/cart.py", "note: str", "remark: str"),
            ("webhooks/v1/cart.py", "CartSpec.from_dict(old.spec.to_dict())", "CartSpec(note=old.spec.remark)"),
            ("webhooks/v1/cart.py", "v2.CartSpec.from_dict(cart.spec.to_dict())", "v2.CartSpec(remark=cart.spec.note)"),
        ):
            path = root / name / file
            assert old in path.read_text()
            path.write_text(path.read_text().replace(old, new))
        forget(name)
        run("manifests")
    forget(name)
    return root


@pytest.fixture
def converting(project_of_two_versions, monkeypatch):
    """That folder; what is imported from it is forgotten."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield project_of_two_versions
    forget(project_of_two_versions.name)


def forget(package):
    for module in [module for module in sys.modules if module.partition(".")[0] == package]:
        del sys.modules[module]


async def test_the_conversion_webhook_of_a_csv_converts(install, admin, namespaces, converting):
    operator = await install(converting, is_lifted=False)
    operator.start(converting.name, converting)
    group = f"webapp.{converting.name}.example.com"
    first, second = (ctrl.Unstructured.of(f"{group}/{version}", "Cart") for version in ("v1", "v2"))
    metadata = meta.ObjectMeta(name="mine", namespace=namespaces[0])
    old = await admin.create(first(metadata=metadata, spec={"note": "by hand"}))

    async def is_converted():
        return (await admin.get(second, ctrl.object_key(old)))["spec"] == {"remark": "by hand"}

    await eventually(is_converted, timeout=LONGEST_WAIT)
    await admin.patch(second(metadata=metadata), ctrl.merge_patch({"spec": {"remark": "rewritten"}}))
    assert (await admin.get(first, ctrl.object_key(old)))["spec"] == {"note": "rewritten"}

    async def is_ready():
        found = await admin.get(first, ctrl.object_key(old))
        return [each["status"] for each in found.get_path("status", "conditions", default=[])] == ["True"]

    await eventually(is_ready, timeout=LONGEST_WAIT)
    operator.assert_all_was_allowed()
