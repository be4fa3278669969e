import asyncio
import gzip
import json

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.api.kind import GroupVersionKind, GroupVersionResource
from ctrlruntime.data import open_data
from ctrlruntime.errors import Forbidden, NoMatchError, ServiceUnavailable, TransportError
from ctrlruntime.rest.mapper import AGGREGATED, RESTMapper

RECORDED = json.loads(gzip.decompress(open_data("kubernetes-1.36/discovery.json.gz")))
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
GAME = GroupVersionKind("example.com", "v1", "Game")


class Server:
    """A server that speaks one form of discovery: groups of versions of resources, and answers that replace its own."""

    def __init__(self, form):
        self.form = form
        self.groups = {
            "": {
                "v1": [
                    self.resource("pods", "Pod", subresources=["status", "log"]),
                    self.resource("nodes", "Node", namespaced=False),
                ]
            },
            "apps": {"v1": [self.resource("deployments", "Deployment", subresources=["status", "scale"])]},
            "batch": {"v1": [self.resource("jobs", "Job")], "v1beta1": [self.resource("cronjobs", "CronJob")]},
        }
        self.preferred = {}
        self.answers = {}
        self.asked = []
        self.gate = asyncio.Event()
        self.gate.set()

    @staticmethod
    def resource(plural, kind, *, namespaced=True, subresources=()):
        return {"plural": plural, "kind": kind, "namespaced": namespaced, "subresources": list(subresources)}

    def install(self, group, version, plural, kind):
        self.groups.setdefault(group, {}).setdefault(version, []).append(self.resource(plural, kind))

    async def fetch(self, path, accept):
        self.asked.append(path)
        await self.gate.wait()
        if path in self.answers:
            status, body = self.answers[path]
            return status, json.dumps(body).encode() if not isinstance(body, bytes) else body
        if path in {"/api", "/apis"}:
            assert accept == AGGREGATED
            body = self.aggregated(path) if self.form == "aggregated" else self.legacy_root(path)
            return 200, json.dumps(body).encode()
        group, _, version = path.removeprefix("/apis/").removeprefix("/api/").rpartition("/")
        if version not in self.groups.get(group, {}):
            return 404, b"404 page not found"
        return 200, json.dumps(self.legacy_resources(group, version)).encode()

    def of(self, path):
        return {group: versions for group, versions in self.groups.items() if (group == "") == (path == "/api")}

    def aggregated(self, path):
        def resource(made):
            return {
                "resource": made["plural"],
                "responseKind": {"group": "", "version": "", "kind": made["kind"]},
                "scope": "Namespaced" if made["namespaced"] else "Cluster",
                "singularResource": made["kind"].lower(),
                "verbs": ["get", "list"],
                "shortNames": ["x"],
                "categories": ["all"],
                "subresources": [{"subresource": name, "verbs": ["get"]} for name in made["subresources"]],
            }

        items = [
            {
                "metadata": {"name": group} if group else {},
                "versions": [
                    {"version": version, "freshness": "Current", "resources": [resource(r) for r in resources]}
                    for version, resources in sorted(versions.items(), key=lambda v: v[0] != self.preferred.get(group))
                ],
            }
            for group, versions in self.of(path).items()
        ]
        return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}

    def legacy_root(self, path):
        if path == "/api":
            return {"kind": "APIVersions", "versions": list(self.groups[""])}
        groups = [
            {
                "name": group,
                "versions": [{"groupVersion": f"{group}/{version}", "version": version} for version in versions],
                "preferredVersion": {"version": self.preferred.get(group, next(iter(versions)))},
            }
            for group, versions in self.of(path).items()
        ]
        return {"kind": "APIGroupList", "groups": groups}

    def legacy_resources(self, group, version):
        resources = []
        for made in self.groups[group][version]:
            resources.append(
                {
                    "name": made["plural"],
                    "singularName": made["kind"].lower(),
                    "namespaced": made["namespaced"],
                    "kind": made["kind"],
                    "verbs": ["get", "list"],
                    "shortNames": ["x"],
                    "categories": ["all"],
                }
            )
            resources += [
                {"name": f"{made['plural']}/{s}", "kind": "Other", "verbs": None} for s in made["subresources"]
            ]
        return {"kind": "APIResourceList", "resources": resources}


class Clock:
    time = 0.0

    def __call__(self):
        return self.time


@pytest.fixture(params=["aggregated", "legacy"])
def server(request):
    return Server(request.param)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def mapper(server, clock):
    return RESTMapper(server.fetch, clock=clock)


async def test_nothing_is_asked_at_construction_and_little_later(server, mapper):
    assert server.asked == []

    for _ in range(3):
        await mapper.resource_for(DEPLOYMENT)
    first = ["/api", "/apis"] if server.form == "aggregated" else ["/api", "/apis", "/apis/apps/v1"]
    assert server.asked == first


async def test_a_resource_is_described_in_full(mapper):
    resource = await mapper.resource_for(DEPLOYMENT)

    assert (resource.group, resource.version, resource.plural, resource.kind) == (
        "apps",
        "v1",
        "deployments",
        "Deployment",
    )
    assert resource.namespaced
    assert resource.verbs == ("get", "list")
    assert resource.subresources == ("status", "scale")
    assert (resource.singular, resource.short_names, resource.categories) == ("deployment", ("x",), ("all",))
    assert resource.gvk == DEPLOYMENT
    assert resource.gvr == GroupVersionResource("apps", "v1", "deployments")


async def test_the_core_group_and_scopes(mapper):
    assert await mapper.is_namespaced(GroupVersionKind("", "v1", "Pod"))
    assert not await mapper.is_namespaced(GroupVersionKind("", "v1", "Node"))


async def test_a_resource_leads_back_to_its_kind(mapper):
    assert await mapper.kind_for(GroupVersionResource("", "v1", "pods")) == GroupVersionKind("", "v1", "Pod")
    with pytest.raises(
        NoMatchError, match=r"does not serve games of example.com/v1; .*kubectl get crd games\.example\.com"
    ):
        await mapper.kind_for(GroupVersionResource("example.com", "v1", "games"))


async def test_the_servers_preference_decides(server, mapper):
    server.groups["batch"]["v2"] = [server.resource("jobs", "Job")]
    server.preferred["batch"] = "v2"

    assert (await mapper.preferred("batch", "Job")).version == "v2"
    assert (await mapper.preferred("batch", "CronJob")).version == "v1beta1", "where the kind is served at all"


async def test_what_is_not_served_is_said_with_advice(mapper):
    with pytest.raises(
        NoMatchError,
        match=r"does not serve Game of example.com/v1; if it is a custom resource, its CRD may be missing: look with "
        r"`kubectl get crd games\.example\.com` and install it",
    ):
        await mapper.resource_for(GAME)
    with pytest.raises(NoMatchError, match=r"Widget of v1; see what it serves with: kubectl api-resources"):
        await mapper.resource_for(GroupVersionKind("", "v1", "Widget"))
    with pytest.raises(NoMatchError, match=r"Game of group example.com;"):
        await mapper.preferred("example.com", "Game")


async def test_versions_that_are_served_are_named(server, mapper):
    await mapper.resource_for(GroupVersionKind("batch", "v1", "Job"))

    with pytest.raises(
        NoMatchError, match=r"Job of batch/v7; (it serves the kind in v1|of that group it has v1, v1beta1)$"
    ):
        await mapper.resource_for(GroupVersionKind("batch", "v7", "Job"))


async def test_a_kind_installed_later_is_found(server, mapper):
    await mapper.resource_for(DEPLOYMENT)
    server.install("example.com", "v1", "games", "Game")

    assert (await mapper.resource_for(GAME)).plural == "games"


async def test_a_version_installed_later_into_a_known_group_is_found(server, mapper):
    server.install("example.com", "v1", "games", "Game")
    await mapper.resource_for(GAME)
    server.install("example.com", "v2", "games", "Game")

    assert (await mapper.resource_for(GAME._replace(version="v2"))).version == "v2"


async def test_what_was_not_found_is_not_looked_for_again_at_once(server, mapper, clock):
    with pytest.raises(NoMatchError):
        await mapper.resource_for(GAME)
    asked = len(server.asked)
    server.install("example.com", "v1", "games", "Game")

    clock.time += 0.9
    with pytest.raises(NoMatchError):
        await mapper.resource_for(GAME)
    assert len(server.asked) == asked
    clock.time += 0.1
    assert (await mapper.resource_for(GAME)).plural == "games"


async def test_invalidate_asks_again_at_once(server, mapper):
    with pytest.raises(NoMatchError):
        await mapper.resource_for(GAME)
    server.install("example.com", "v1", "games", "Game")

    mapper.invalidate("example.com")
    assert (await mapper.resource_for(GAME)).plural == "games"


async def test_whoever_doubts_is_answered_by_the_server_once_a_second(server, clock):
    mapper = RESTMapper(server.fetch, clock=clock)
    server.install("example.com", "v1", "games", "Game")
    assert (await mapper.resource_for(GAME)).namespaced

    server.groups["example.com"]["v1"] = [server.resource("games", "Game", namespaced=False)]
    assert not (await mapper.ask_again(GAME)).namespaced
    asked = len(server.asked)
    assert not (await mapper.ask_again(GAME)).namespaced
    assert len(server.asked) == asked
    clock.time += 1.0
    await mapper.ask_again(GAME)
    assert len(server.asked) > asked


async def test_what_vanished_is_gone_after_invalidate(server, mapper):
    server.install("example.com", "v1", "games", "Game")
    await mapper.resource_for(GAME)
    del server.groups["example.com"]

    assert (await mapper.resource_for(GAME)).plural == "games"
    mapper.invalidate("example.com")
    with pytest.raises(NoMatchError):
        await mapper.resource_for(GAME)
    mapper.invalidate()
    assert (await mapper.resource_for(DEPLOYMENT)).plural == "deployments"


async def test_questions_asked_together_share_one_load(server, mapper):
    server.gate.clear()
    asking = [asyncio.ensure_future(mapper.resource_for(DEPLOYMENT)) for _ in range(10)]
    for _ in range(5):
        await asyncio.sleep(0)
    asking[0].cancel()

    server.gate.set()
    async with asyncio.timeout(LONGEST_WAIT):
        answers = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert {answer.plural for answer in answers[1:]} == {"deployments"}
    assert len(server.asked) == len(set(server.asked))


async def test_another_loop_may_ask_at_the_same_time(server, mapper):
    await mapper.resource_for(DEPLOYMENT)

    other = await asyncio.to_thread(lambda: asyncio.run(mapper.resource_for(GroupVersionKind("batch", "v1", "Job"))))
    assert other.plural == "jobs"


async def test_a_failure_is_its_exception_and_is_not_remembered(server, mapper):
    server.answers["/apis"] = (403, {"kind": "Status", "reason": "Forbidden", "code": 403, "message": "no"})
    with pytest.raises(Forbidden):
        await mapper.resource_for(DEPLOYMENT)

    del server.answers["/apis"]
    assert (await mapper.resource_for(DEPLOYMENT)).plural == "deployments"


@pytest.mark.parametrize("body", [b"<html>", b"[]"])
async def test_an_answer_that_is_no_discovery_is_shown(server, mapper, body):
    server.answers["/apis"] = (200, body)

    with pytest.raises(TransportError, match="not a discovery document"):
        await mapper.resource_for(DEPLOYMENT)


async def test_what_is_no_api_server_is_said(server, mapper):
    server.answers |= {"/api": (404, b""), "/apis": (404, b"")}

    with pytest.raises(TransportError, match="Check that it is the address of a Kubernetes API server"):
        await mapper.resource_for(DEPLOYMENT)


async def test_legacy_a_vanished_version_invalidates_its_group(clock):
    server = Server("legacy")
    mapper = RESTMapper(server.fetch, clock=clock)
    await mapper.resource_for(GroupVersionKind("batch", "v1", "Job"))
    server.groups["batch"] = {"v1": [server.resource("cronjobs", "CronJob")]}

    with pytest.raises(NoMatchError):
        await mapper.resource_for(GroupVersionKind("batch", "v1beta1", "CronJob"))
    assert (await mapper.preferred("batch", "CronJob")).version == "v1"


async def test_legacy_one_broken_group_does_not_stop_the_others(clock):
    server = Server("legacy")
    server.install("metrics.k8s.io", "v1", "nodes", "NodeMetrics")
    server.answers["/apis/metrics.k8s.io/v1"] = (503, b"")
    mapper = RESTMapper(server.fetch, clock=clock)

    with pytest.raises(ServiceUnavailable):
        await mapper.resource_for(GroupVersionKind("metrics.k8s.io", "v1", "NodeMetrics"))
    assert (await mapper.resource_for(DEPLOYMENT)).plural == "deployments"


async def test_aggregated_a_stale_group_is_a_failure_of_its_own_and_may_recover(clock):
    server = Server("aggregated")
    server.install("metrics.k8s.io", "v1", "nodes", "NodeMetrics")
    kind = GroupVersionKind("metrics.k8s.io", "v1", "NodeMetrics")
    whole = server.aggregated("/apis")
    whole["items"][-1]["versions"] = [{"version": "v1", "freshness": "Stale"}]
    server.answers["/apis"] = (200, whole)
    mapper = RESTMapper(server.fetch, clock=clock)

    with pytest.raises(ServiceUnavailable, match=r"kubectl get apiservice v1\.metrics\.k8s\.io"):
        await mapper.resource_for(kind)
    assert (await mapper.resource_for(DEPLOYMENT)).plural == "deployments"
    server.answers.clear()
    clock.time += 1
    assert (await mapper.resource_for(kind)).plural == "nodes"


async def test_clusters_share_the_groups_that_are_equal(clock):
    first, second = Server("aggregated"), Server("aggregated")
    second.install("batch", "v1", "later", "Later")
    job = GroupVersionKind("batch", "v1", "Job")
    mappers = [RESTMapper(server.fetch, clock=clock) for server in (first, second)]

    one, other = [(await mapper.resource_for(DEPLOYMENT), await mapper.resource_for(job)) for mapper in mappers]

    assert one == other
    assert (one[0] is other[0], one[1] is other[1]) == (True, False)


@pytest.mark.parametrize("form", ["aggregated", "legacy"])
async def test_what_a_real_server_says_is_understood(form):
    async def fetch(path, accept):
        recorded = (
            RECORDED["aggregated"] if form == "aggregated" and path in RECORDED["aggregated"] else RECORDED["legacy"]
        )
        document = recorded.get(path)
        return (200, json.dumps(document).encode()) if document is not None else (404, b"")

    mapper = RESTMapper(fetch)

    pods = await mapper.resource_for(GroupVersionKind("", "v1", "Pod"))
    assert {"status", "log", "eviction", "exec"} <= set(pods.subresources)
    assert "deletecollection" in pods.verbs
    assert pods.short_names == ("po",)
    scaler = await mapper.preferred("autoscaling", "HorizontalPodAutoscaler")
    assert (scaler.version, scaler.plural) == ("v2", "horizontalpodautoscalers")
    assert not (
        await mapper.resource_for(GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole"))
    ).namespaced
