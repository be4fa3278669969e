import asyncio

import pytest
from controllers_cluster import cluster

from ctrlruntime.apiserver.authorization import RBAC, AuthorizationAttributes, User, bootstrap
from ctrlruntime.errors import Forbidden

GROUP = "rbac.authorization.k8s.io"
ALICE = User("alice", ("dev", "system:authenticated"))
ROBOT = User("system:serviceaccount:default:robot", ("system:serviceaccounts",))


@pytest.fixture
async def api():
    async with cluster(()) as running:
        yield running.api


def role(name, *rules, namespace="default"):
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "rules": list(rules)}


def binding(name, ref, *subjects, namespace="default"):
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": GROUP, "kind": ref["kind"], "name": ref["metadata"]["name"]},
        "subjects": list(subjects),
    }


async def store(api, *documents):
    for document in documents:
        plural = document["kind"].lower() + "s"
        await api.create(GROUP, plural, document["metadata"].get("namespace", ""), document)


def user(name):
    return {"kind": "User", "apiGroup": GROUP, "name": name}


def rule(verbs, groups=("",), resources=("pods",), **more):
    return {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources), **more}


def asks(verb, resource="pods", namespace="default", **more):
    return AuthorizationAttributes(verb, resource=resource, namespace=namespace, version="v1", **more)


def test_masters_may_do_everything_without_a_role():
    class Nothing:
        def list(self, *args, **options):
            raise AssertionError("no role is read")

    assert RBAC(Nothing()).allowed(User("root", ("system:masters",)), asks("delete")) == (True, "")


async def test_role_binding_allows_in_its_namespace_only(api):
    reader = role("reader", rule(["get", "list"]))
    await store(api, reader, binding("readers", reader, user("alice")))
    rbac = RBAC(api)

    allowed, reason = rbac.allowed(ALICE, asks("get"))

    assert (allowed, reason) == (
        True,
        'RBAC: allowed by RoleBinding "readers/default" of Role "reader" to User "alice"',
    )
    assert rbac.allowed(ALICE, asks("get", namespace="other")) == (False, "")
    assert rbac.allowed(ALICE, asks("get", namespace="")) == (False, "")
    assert rbac.allowed(ALICE, asks("delete")) == (False, "")
    assert rbac.allowed(User("bob"), asks("get")) == (False, "")


async def test_cluster_role_binding_allows_everywhere_and_names_the_group(api):
    reader = role("reader", rule(["get"]), namespace="")
    group = {"kind": "Group", "apiGroup": GROUP, "name": "dev"}
    await store(api, reader, binding("devs", reader, group, namespace=""))
    rbac = RBAC(api)

    expected = 'RBAC: allowed by ClusterRoleBinding "devs" of ClusterRole "reader" to Group "dev"'
    assert rbac.allowed(ALICE, asks("get")) == (True, expected)
    assert rbac.allowed(ALICE, asks("get", namespace="")) == (True, expected)


async def test_service_account_of_the_bindings_namespace(api):
    reader = role("reader", rule(["get"]))
    account = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
    await store(api, reader, binding("robots", reader, account))

    allowed, reason = RBAC(api).allowed(ROBOT, asks("get"))

    assert allowed
    assert reason.endswith('of Role "reader" to ServiceAccount "robot/default"')


@pytest.mark.parametrize(
    ("granted", "asked", "expected"),
    [
        (rule(["*"], ["*"], ["*"]), asks("anything", "things", group="x.io"), True),
        (rule(["get"], ["apps"]), asks("get"), False),
        (rule(["get"], resources=["pods"]), asks("get", subresource="log"), False),
        (rule(["get"], resources=["pods/log"]), asks("get", subresource="log"), True),
        (rule(["get"], resources=["*/scale"]), asks("get", "anythings", subresource="scale"), True),
        (rule(["get"], resources=["*"]), asks("get", subresource="log"), True),
        (rule(["get"], resourceNames=["one"]), asks("get", name="one"), True),
        (rule(["get"], resourceNames=["one"]), asks("get", name="two"), False),
        (rule(["list"], resourceNames=["one"]), asks("list"), False),
    ],
)
async def test_rules(api, granted, asked, expected):
    some = role("some", granted)
    await store(api, some, binding("some", some, user("alice")))

    assert RBAC(api).allowed(ALICE, asked)[0] is expected


async def test_paths_that_are_no_resources(api):
    metrics = role("metrics", {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/debug/*"]}, namespace="")
    await store(api, metrics, binding("metrics", metrics, user("alice"), namespace=""))
    rbac = RBAC(api)

    assert rbac.allowed(ALICE, AuthorizationAttributes("get", path="/metrics"))[0]
    assert rbac.allowed(ALICE, AuthorizationAttributes("get", path="/debug/pprof/heap"))[0]
    assert not rbac.allowed(ALICE, AuthorizationAttributes("get", path="/healthz"))[0]
    assert not rbac.allowed(ALICE, asks("get"))[0]


async def test_binding_to_a_missing_role_is_named_in_the_refusal(api):
    await store(api, binding("broken", role("ghost", namespace=""), user("alice")))

    error = RBAC(api).forbidden(ALICE, asks("get", name="x"))

    assert str(error) == (
        'pods "x" is forbidden: User "alice" cannot get resource "pods" in API group "" in the namespace "default": '
        'RBAC: clusterrole.rbac.authorization.k8s.io "ghost" not found'
    )


@pytest.mark.parametrize(
    ("asked", "message", "details"),
    [
        (
            asks("list", "namespaces", ""),
            'namespaces is forbidden: User "alice" cannot list resource "namespaces" in API group "" at the cluster scope',
            {"kind": "namespaces"},
        ),
        (
            asks("get", namespace="t1", name="x"),
            'pods "x" is forbidden: User "alice" cannot get resource "pods" in API group "" in the namespace "t1"',
            {"name": "x", "kind": "pods"},
        ),
        (
            AuthorizationAttributes("update", "apps", "v1", "deployments", "scale", "t1", "web"),
            (
                'deployments.apps "web" is forbidden: User "alice" cannot update resource "deployments/scale" in API group '
                '"apps" in the namespace "t1"'
            ),
            {"name": "web", "group": "apps", "kind": "deployments"},
        ),
        (AuthorizationAttributes("get", path="/metrics"), 'forbidden: User "alice" cannot get path "/metrics"', {}),
        (AuthorizationAttributes("get", path="/<x>"), 'forbidden: User "alice" cannot get path "/&lt;x&gt;"', {}),
    ],
)
async def test_refusals_have_the_servers_words(api, asked, message, details):
    error = RBAC(api).forbidden(ALICE, asked)

    assert isinstance(error, Forbidden)
    assert (str(error), dict(error.details), error.code) == (message, details, 403)


async def test_change_of_a_binding_counts_at_once(api):
    reader = role("reader", rule(["get"]))
    await store(api, reader, binding("readers", reader, user("alice")))
    rbac = RBAC(api)
    task = asyncio.create_task(rbac.run())
    await asyncio.sleep(0)
    assert rbac.allowed(ALICE, asks("get"))[0]

    await api.delete(GROUP, "rolebindings", "default", "readers")
    for _ in range(3):
        await asyncio.sleep(0)
    assert not rbac.allowed(ALICE, asks("get"))[0]

    task.cancel()


async def test_decisions_are_answered_from_memory_while_nothing_changes(api):
    reader = role("reader", rule(["get"]))
    await store(api, reader, binding("readers", reader, user("alice")))
    rbac = RBAC(api)
    task = asyncio.create_task(rbac.run())
    for _ in range(3):
        await asyncio.sleep(0)
    assert rbac.allowed(ALICE, asks("get"))[0]

    api.list = None  # reading again would fail
    assert rbac.allowed(ALICE, asks("get"))[0]

    task.cancel()


async def test_bootstrap_policy_can_be_stored_and_gives_discovery_to_all(api):
    for name in ("kube-system", "kube-public"):
        await api.create("", "namespaces", "", {"metadata": {"name": name}})
    for plural, document in bootstrap():
        await api.create(GROUP, plural, document["metadata"].get("namespace", ""), document)
    rbac = RBAC(api)

    assert len(bootstrap()) == 69 + 50 + 7 + 7
    assert rbac.allowed(ALICE, AuthorizationAttributes("get", path="/apis/apps/v1"))[0]
    assert rbac.allowed(User("x", ("system:unauthenticated",)), AuthorizationAttributes("get", path="/healthz"))[0]
    assert not rbac.allowed(ALICE, asks("get"))[0]
    manager = User("system:kube-controller-manager")
    assert rbac.allowed(manager, asks("list", "secrets", ""))[0]
    assert any("nonResourceURLs" in rule for rule in rbac.holdings(ALICE, "default").rules)
