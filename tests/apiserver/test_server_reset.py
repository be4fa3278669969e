from __future__ import annotations

import pytest

from ctrlruntime.apiserver import Options, ServerThread

CORE = "/api/v1/namespaces/default"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def everything(api):
    """(group version, plural, namespace, name) of all objects, and their uids and versions."""
    return api.call(
        lambda: {
            (table.group, table.plural, *key): record.body
            for table in api.server.store.tables()
            for key, record in table.records.items()
        }
    )


def names(api, path):
    return {item["metadata"]["name"] for item in api.get(path).body["items"]}


def test_after_a_reset_the_state_is_that_of_the_start(api, thread, make):
    before = everything(api)
    api.made("/api/v1/namespaces", {"metadata": {"name": "team"}})
    api.made("/api/v1/namespaces/team/configmaps", make.config_map("a"))
    api.made(f"{CORE}/secrets", {"metadata": {"name": "s"}})

    thread.reset()

    assert everything(api) == before
    assert api.get("/api/v1/namespaces/team").code == 404


def test_what_was_there_at_the_start_comes_back(api, thread):
    whole = api.get(ROLES).body["items"]
    api.patch(f"{ROLES}/view", {"rules": None})
    api.delete(f"{ROLES}/edit")
    api.patch("/api/v1/namespaces/kube-public", {"metadata": {"labels": {"a": "b"}}})

    thread.reset()
    again = api.get(ROLES).body["items"]

    def content(items):
        return {item["metadata"]["name"]: item.get("rules") for item in items}

    assert content(again) == content(whole)
    assert api.get("/api/v1/namespaces/kube-public").body["metadata"]["labels"] == {
        "kubernetes.io/metadata.name": "kube-public"
    }


def test_an_object_that_comes_back_changed_has_a_new_version_and_one_that_was_deleted_a_new_uid(api, thread):
    before = {name: api.get(f"{ROLES}/{name}").body["metadata"] for name in ("view", "edit", "admin")}
    api.patch(f"{ROLES}/view", {"metadata": {"labels": {"a": "b"}}})
    api.delete(f"{ROLES}/edit")
    last = int(api.get("/api/v1/namespaces").version)

    thread.reset()
    after = {name: api.get(f"{ROLES}/{name}").body["metadata"] for name in ("view", "edit", "admin")}

    assert after["admin"] == before["admin"]
    assert after["view"]["uid"] == before["view"]["uid"]
    assert after["edit"]["uid"] != before["edit"]["uid"]
    assert int(after["view"]["resourceVersion"]) > last
    assert int(after["edit"]["resourceVersion"]) > last


def test_versions_go_on_upwards(api, thread, make):
    made = api.made(f"{CORE}/configmaps", make.config_map("a"))["metadata"]

    thread.reset()
    again = api.made(f"{CORE}/configmaps", make.config_map("a"))["metadata"]

    assert int(again["resourceVersion"]) > int(made["resourceVersion"]) + 1


def test_custom_kinds_are_served_no_more_and_can_be_made_anew(api, thread, make):
    path = f"/apis/{make.group}/v1/namespaces/default/gears"
    api.made(make.definitions, make.definition("gears", "Gear"))
    body = {**make.widget("g"), "kind": "Gear"}
    api.made(path, body)

    thread.reset()

    assert api.get(path).code == 404
    assert make.group not in {group["name"] for group in api.get("/apis").body["groups"]}
    api.made(make.definitions, make.definition("gears", "Gear"))
    assert names(api, path) == set()
    assert api.made(path, body)["metadata"]["generation"] == 1


def test_watches_end_and_their_versions_are_too_old(api, thread, make):
    version = api.get(f"{CORE}/configmaps").version
    with api.watch(f"{CORE}/configmaps", resourceVersion=version) as frames:
        thread.reset()
        assert frames.rest() == []

    with api.watch(f"{CORE}/configmaps", resourceVersion=version) as frames:
        assert frames.next()["object"]["code"] == 410
    fresh = api.get(f"{CORE}/configmaps").version
    with api.watch(f"{CORE}/configmaps", resourceVersion=fresh) as frames:
        api.made(f"{CORE}/configmaps", make.config_map("new"))
        assert frames.take(1) == [("ADDED", "new")]


def test_a_continue_token_from_before_is_expired(api, thread, make):
    for name in "abc":
        api.made(f"{CORE}/configmaps", make.config_map(name))
    token = api.get(f"{CORE}/configmaps", limit=1).body["metadata"]["continue"]

    thread.reset()

    assert api.get(f"{CORE}/configmaps", limit=1, **{"continue": token}).code == 410


def test_faults_are_cleared(api, thread):
    api.call(lambda: api.server.faults.fail_next("GET", "/api", 500, times=100))

    thread.reset()

    assert api.get("/api/v1/namespaces").code == 200


def test_connections_tokens_and_kubeconfigs_stay(api, thread, make):
    api.call(lambda: api.server.add_token("robin", "robin", ("system:masters",)))

    thread.reset()

    robin = api.as_user("robin")
    assert api.get("/api/v1/namespaces").code == 200
    assert robin.get("/api/v1/namespaces").code == 200
    robin.close()


def test_a_right_that_was_given_is_gone(api, thread):
    api.call(lambda: api.server.add_token("carol", "carol"))
    binding = {
        "metadata": {"name": "carol"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "carol"}],
    }
    api.made("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    carol = api.as_user("carol")
    assert carol.get("/api/v1/secrets").code == 200

    thread.reset()

    assert carol.get("/api/v1/secrets").code == 403
    carol.close()


def test_twenty_resets_leave_a_server_that_serves(api, thread, make):
    for _ in range(20):
        api.made(f"{CORE}/configmaps", make.config_map("a"))
        thread.reset()

    assert names(api, f"{CORE}/configmaps") == set()


@pytest.fixture
def busy():
    """A server with its controllers."""
    with ServerThread(Options()) as running:
        yield running


def await_pods(api, count):
    """Wait by a watch until `count` Pods are Ready."""
    ready = set()
    with api.watch(f"{CORE}/pods") as frames:
        while len(ready) < count:
            pod = frames.next()["object"]
            conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions") or ()}
            if conditions.get("Ready") == "True":
                ready.add(pod["metadata"]["name"])
    return ready


def test_controllers_work_on_after_a_reset(busy, make):
    api = make.client(busy)
    try:
        for _ in range(2):
            api.made("/apis/apps/v1/namespaces/default/deployments", make.deployment("web", 2))
            await_pods(api, 2)
            busy.reset()
            assert names(api, "/api/v1/pods") == set()
            assert names(api, "/apis/apps/v1/deployments") == set()
    finally:
        api.close()


async def test_a_reset_on_the_callers_loop(make):
    from ctrlruntime.apiserver import APIServer
    from ctrlruntime.errors import NotFound

    server = APIServer(Options(controllers=[]))
    await server.start()
    try:
        await server.registry.create("", "configmaps", "default", make.config_map("a"))
        await server.reset()

        assert server.registry.get("", "configmaps", "default", "a") is None
        with pytest.raises(NotFound):
            await server.registry.delete("", "configmaps", "default", "a")
    finally:
        await server.stop()
