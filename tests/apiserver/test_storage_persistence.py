from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import json
import os
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64decode
from contextlib import contextmanager
from random import Random

import pytest
from cases import seeds
from servers import LONGEST_WAIT

from ctrlruntime.apiserver import Options, ServerThread
from ctrlruntime.apiserver.options import TokenUser
from ctrlruntime.apiserver.registry.conditions import Conditions
from ctrlruntime.apiserver.storage.persistence import FORMAT, DataFile
from ctrlruntime.errors import ConfigError

A = ("", "configmaps", "default", "a")
B = ("apps", "deployments", "default", "b")


def left_in(path):
    file = DataFile(path)
    try:
        return {(o.group, o.plural, o.namespace, o.name): (o.revision, o.body) for o in file.objects()}, file.revision
    finally:
        file.close()


async def test_what_was_noted_is_there_after_a_clean_end(tmp_path):
    file = DataFile(tmp_path / "data")
    file.note(A, 5, b"{1}")
    file.note(B, 6, b"{2}")
    await asyncio.sleep(0)
    file.note(A, 7, b"{3}")
    file.close(9)

    assert left_in(tmp_path / "data") == ({A: (7, b"{3}"), B: (6, b"{2}")}, 9)


async def test_a_removed_object_is_gone_and_its_revision_counts(tmp_path):
    file = DataFile(tmp_path / "data")
    file.note(A, 5, b"{1}")
    await asyncio.sleep(0)
    file.note(A, 6, None)
    file.close()

    assert left_in(tmp_path / "data") == ({}, 6)


def test_notes_without_a_loop_are_kept_too(tmp_path):
    file = DataFile(tmp_path / "data")
    file.note(A, 5, b"{1}")
    file.close()

    assert left_in(tmp_path / "data")[0] == {A: (5, b"{1}")}


async def test_what_is_committed_is_in_the_file(tmp_path):
    file = DataFile(tmp_path / "data")
    file.note(A, 5, b"{1}")

    await file.committed()
    copy = tmp_path / "copy"
    for suffix in ("", "-wal"):
        copy.with_name(copy.name + suffix).write_bytes((tmp_path / f"data{suffix}").read_bytes())
    file.close()
    assert left_in(copy)[0] == {A: (5, b"{1}")}


async def test_the_revision_never_goes_back(tmp_path):
    file = DataFile(tmp_path / "data")
    file.note(A, 50, b"{1}")
    await file.committed()
    file.note(B, 7, b"{2}")
    file.close()

    assert left_in(tmp_path / "data")[1] == 50


def test_values_are_remembered(tmp_path):
    file = DataFile(tmp_path / "data")
    file.remember("token", b"t0k")
    file.close()
    file = DataFile(tmp_path / "data")

    assert file.recall("token") == b"t0k"
    assert file.recall("else") is None
    file.close()


async def test_after_a_clean_end_there_is_one_file_and_only_its_owner_reads_it(tmp_path):
    file = DataFile(tmp_path / "data")
    file.note(A, 5, b"{1}")
    await file.committed()
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    file.close()

    assert set(modes.values()) == {0o600}
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path):
    path = tmp_path / "data"
    DataFile(path).close(1)
    for name in ("data", "data-wal", "data-journal"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o664)
    tmp_path.chmod(0o750)

    file = DataFile(path)
    modes = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}
    file.close()

    assert modes["data"] == 0o600
    assert set(modes.values()) == {0o600}
    assert tmp_path.stat().st_mode & 0o777 == 0o750  # the folder is the user's


def test_a_mode_that_cannot_be_changed_is_an_error(tmp_path, monkeypatch):
    path = tmp_path / "data"
    DataFile(path).close(1)
    path.chmod(0o644)

    def refuse(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(type(path), "chmod", refuse)

    with pytest.raises(
        ConfigError,
        match=r"cannot change the mode of the data file .*Other users can read its keys and Secrets.* chmod 600",
    ):
        DataFile(path)


def test_closing_twice_does_nothing(tmp_path):
    file = DataFile(tmp_path / "data")
    file.close()
    file.close()

    assert left_in(tmp_path / "data") == ({}, 0)


async def test_after_the_end_what_was_committed_is_confirmed_and_a_new_write_is_an_error(tmp_path):
    file = DataFile(tmp_path / "data")
    file.note(A, 5, b"{1}")
    file.close()

    async with asyncio.timeout(LONGEST_WAIT):
        await file.committed()
        file.note(B, 6, b"{2}")
        with pytest.raises(OSError, match=r"cannot write the data file .*: it is closed"):
            await file.committed()
    assert set(left_in(tmp_path / "data")[0]) == {A}


async def test_writes_that_could_not_be_saved_are_an_error_after_the_end_too(tmp_path):
    file = DataFile(tmp_path / "data")
    file._connection.execute("PRAGMA max_page_count = 5")
    file.note(A, 5, b"x" * 100_000)
    with pytest.raises(ConfigError):
        file.close()

    async with asyncio.timeout(LONGEST_WAIT):
        with pytest.raises(OSError, match="it is closed"):
            await file.committed()


async def test_a_write_after_the_end_starts_no_thread(tmp_path):
    file = DataFile(tmp_path / "data")
    file.close()
    file.note(A, 5, b"{1}")

    assert "ctrlruntime-data" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(OSError, match="it is closed"):
        await file.committed()


def test_no_thread_stays(tmp_path):
    DataFile(tmp_path / "data").close()

    assert "ctrlruntime-data" not in {thread.name for thread in threading.enumerate()}


CHILD = """
import asyncio, sys
from ctrlruntime.apiserver.storage.persistence import DataFile
async def main():
    file = DataFile(sys.argv[1])
    for number in range(100):
        file.note(("", "configmaps", "default", f"n{number}"), number + 1, b"x" * 1000)
        file.note(("", "secrets", "default", f"n{number}"), number + 1, b"x" * 1000)
        await asyncio.sleep(0)
    await file.committed()
    for number in range(100, 5000):
        file.note(("", "configmaps", "default", f"n{number}"), number + 1, b"x" * 1000)
        file.note(("", "secrets", "default", f"n{number}"), number + 1, b"x" * 1000)
        await asyncio.sleep(0)
        if number == 1000:
            print("go", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


def test_a_killed_process_leaves_whole_turns_and_what_was_committed(tmp_path):
    with subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path / "data")], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait(LONGEST_WAIT)

    objects, revision = left_in(tmp_path / "data")
    maps = {name[3] for name in objects if name[1] == "configmaps"}
    secrets = {name[3] for name in objects if name[1] == "secrets"}
    assert maps == secrets
    assert len(maps) >= 100
    assert revision == len(maps)


# Files that cannot be used


def refusal(path):
    with pytest.raises(ConfigError) as caught:
        DataFile(path).close()
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert str(path) in text or str(path.parent) in text
    return text


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "data"
    path.write_text("my thesis\n" * 500)

    assert "is not a SQLite database" in refusal(path)
    assert path.read_text() == "my thesis\n" * 500


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "data"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE books (title TEXT)")
    other.commit()
    other.close()
    before = path.read_bytes()

    assert "database of another program" in refusal(path)
    assert path.read_bytes() == before


def test_a_newer_format_is_refused(tmp_path):
    path = tmp_path / "data"
    DataFile(path).close()
    other = sqlite3.connect(path)
    other.execute(f"PRAGMA user_version = {FORMAT + 1}")
    other.close()

    assert f"has format {FORMAT + 1}, but this version reads at most {FORMAT}" in refusal(path)


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "data"
    file = DataFile(path)
    for number in range(200):
        file.note(("", "configmaps", "default", f"n{number}"), number + 1, b"x" * 1000)
    file.close()
    content = bytearray(path.read_bytes())
    content[4096 * 4 : 4096 * 30] = b"\xff" * (4096 * 26)
    path.write_bytes(content)

    assert "is corrupt: " in refusal(path)


def test_a_file_cut_short_is_refused(tmp_path):
    path = tmp_path / "data"
    file = DataFile(path)
    for number in range(200):
        file.note(("", "configmaps", "default", f"n{number}"), number + 1, b"x" * 1000)
    file.close()
    path.write_bytes(path.read_bytes()[:9000])

    assert "is corrupt: " in refusal(path)


def test_a_second_server_on_the_file_is_refused(tmp_path):
    file = DataFile(tmp_path / "data")
    try:
        assert "in use by another server" in refusal(tmp_path / "data")
    finally:
        file.close()


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    assert "does not exist" in refusal(tmp_path / "nowhere" / "data")


def test_a_folder_as_the_file_is_refused(tmp_path):
    assert "is a folder" in refusal(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir(0o500)

    assert "cannot" in refusal(folder / "data")


def test_writes_that_cannot_be_saved_are_said_at_the_end(tmp_path, monkeypatch):
    path = tmp_path / "data"
    file = DataFile(path)
    file._connection.execute("PRAGMA max_page_count = 5")
    file.note(A, 5, b"x" * 100_000)

    with pytest.raises(ConfigError, match=r"the last writes are not in the data file .*: database or disk is full"):
        file.close()


# The server on a data file

SCHEMA = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
}

CORE = "/api/v1/namespaces/default"


@contextmanager
def running(path, make, **options):
    with ServerThread(Options(data=path, **{"controllers": [], **options})) as thread:
        api = make.client(thread)
        try:
            yield api
        finally:
            api.close()


def listed(api, path):
    return {item["metadata"]["name"]: item for item in api.get(path).body["items"]}


def test_objects_come_back_as_they_were(tmp_path, make):
    with running(tmp_path / "data", make) as api:
        kept = api.made(f"{CORE}/configmaps", make.config_map("a", k="v"))
        api.made(f"{CORE}/configmaps", make.config_map("gone"))
        api.delete(f"{CORE}/configmaps/gone")
        api.made("/apis/apps/v1/namespaces/default/deployments", make.deployment("web"))
        web = api.patch("/apis/apps/v1/namespaces/default/deployments/web", {"spec": {"replicas": 3}}).body
        namespaces = api.get("/api/v1/namespaces").body["items"]
        roles = listed(api, "/apis/rbac.authorization.k8s.io/v1/clusterroles")

    with running(tmp_path / "data", make) as api:
        assert api.get(f"{CORE}/configmaps/a").body == kept
        assert set(listed(api, f"{CORE}/configmaps")) == {"a"}
        assert api.get("/apis/apps/v1/namespaces/default/deployments/web").body == web
        assert web["metadata"]["generation"] == 2
        assert api.get("/api/v1/namespaces").body["items"] == namespaces
        assert listed(api, "/apis/rbac.authorization.k8s.io/v1/clusterroles") == roles


def test_conditions_that_a_run_did_not_get_to_are_written_by_the_next(tmp_path, make, monkeypatch):
    services, schemas = (
        "/apis/apiregistration.k8s.io/v1/apiservices",
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    )
    spec = {"group": "g.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
    service = {"metadata": {"name": "v1.g.example.com"}, "spec": {**spec, "insecureSkipTLSVerify": True}}
    service["spec"]["service"] = {"namespace": "default", "name": "s"}
    schema = {
        "metadata": {"name": "f"},
        "spec": {"priorityLevelConfiguration": {"name": "no"}, "matchingPrecedence": 2},
    }

    def conditions(api, path):
        found = (api.get(path).body.get("status") or {}).get("conditions") or []
        return [(one["type"], one["status"], one["reason"]) for one in found]

    with monkeypatch.context() as patched:
        patched.setattr(Conditions, "_sync", lambda _self: None)  # the run ends before it looks
        with running(tmp_path / "data", make) as api:
            api.made(services, service)
            api.made(schemas, schema)
            assert conditions(api, f"{schemas}/f") == conditions(api, f"{services}/v1.g.example.com") == []

    with running(tmp_path / "data", make) as api:
        assert conditions(api, f"{schemas}/f") == [("Dangling", "True", "NotFound")]
        assert conditions(api, f"{services}/v1.g.example.com") == [("Available", "False", "ServiceNotFound")]
        api.made(f"{CORE}/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
        assert conditions(api, f"{services}/v1.g.example.com") == [("Available", "False", "ServicePortError")]


def test_versions_go_on_above_those_of_the_run_before(tmp_path, make):
    with running(tmp_path / "data", make) as api:
        api.call(lambda: setattr(api.server.store, "revision", 10**15))  # far ahead of the clock
        made = api.made(f"{CORE}/configmaps", make.config_map("a"))
        api.delete(f"{CORE}/configmaps/a")
        last = int(api.get(f"{CORE}/configmaps").version)

    with running(tmp_path / "data", make) as api:
        again = api.made(f"{CORE}/configmaps", make.config_map("a"))

    assert int(made["metadata"]["resourceVersion"]) < last < int(again["metadata"]["resourceVersion"])


def test_a_watch_from_an_earlier_run_is_told_to_list_again(tmp_path, make):
    with running(tmp_path / "data", make) as api:
        version = api.get(f"{CORE}/configmaps").version

    with running(tmp_path / "data", make) as api:
        with api.watch(f"{CORE}/configmaps", resourceVersion=version) as frames:
            frame = frames.next()
        assert (frame["type"], frame["object"]["code"]) == ("ERROR", 410)
        fresh = api.get(f"{CORE}/configmaps").version
        with api.watch(f"{CORE}/configmaps", resourceVersion=fresh) as frames:
            api.made(f"{CORE}/configmaps", make.config_map("new"))
            assert frames.take(1) == [("ADDED", "new")]


def test_custom_kinds_are_served_again_with_their_objects(tmp_path, make):
    path = f"/apis/{make.group}/v1/namespaces/default/widgets"
    with running(tmp_path / "data", make) as api:
        made = api.made(make.definitions, make.definition("widgets", "Widget"))
        one = api.made(path, make.widget("one"))
        status = api.put(f"{path}/one/status", {**one, "status": {"phase": "Up"}}).body

    with running(tmp_path / "data", make) as api:
        assert api.get(f"{make.definitions}/widgets.{make.group}").body["metadata"]["uid"] == made["metadata"]["uid"]
        assert api.get(f"{path}/one").body == status
        assert api.post(path, make.widget("bad", size=-1)).code == 422
        again = api.put(f"{path}/one", {**status, "spec": {"size": 7}})
        assert (again.code, again.body["metadata"]["generation"]) == (200, 2)
        assert api.delete(f"{make.definitions}/widgets.{make.group}").code == 200
        assert api.get(path).code == 404

    with running(tmp_path / "data", make) as api:
        assert api.get(path).code == 404


def test_defaults_that_came_after_an_object_reach_it_after_a_restart_too(tmp_path, make):
    path = f"/apis/{make.group}/v1/namespaces/default/widgets"
    with running(tmp_path / "data", make) as api:
        api.made(make.definitions, make.definition("widgets", "Widget"))
        api.made(path, make.widget("one"))
        definition = api.get(f"{make.definitions}/widgets.{make.group}").body
        properties = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        properties["replicas"]["default"] = 5
        assert api.put(f"{make.definitions}/widgets.{make.group}", definition).code == 200
        assert api.get(f"{path}/one").body["spec"]["replicas"] == 5

    with running(tmp_path / "data", make) as api:
        assert api.get(f"{path}/one").body["spec"]["replicas"] == 5
        assert listed(api, path)["one"]["spec"]["replicas"] == 5


def test_objects_of_an_older_storage_version_are_read_after_a_restart(tmp_path, make):
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": SCHEMA}}
        for name in ("v1", "v2")
    ]
    path = f"/apis/{make.group}/v2/namespaces/default/widgets"
    with running(tmp_path / "data", make) as api:
        api.made(make.definitions, make.definition("widgets", "Widget", versions=versions))
        api.made(f"/apis/{make.group}/v1/namespaces/default/widgets", make.widget("one"))
        definition = api.get(f"{make.definitions}/widgets.{make.group}").body
        definition["spec"]["versions"][0].update(storage=False, served=False)
        definition["spec"]["versions"][1].update(storage=True)
        assert api.put(f"{make.definitions}/widgets.{make.group}", definition).code == 200

    with running(tmp_path / "data", make) as api:
        one = api.get(f"{path}/one").body
        assert (one["apiVersion"], one["spec"]["size"]) == (f"{make.group}/v2", 1)
        assert api.patch(f"{path}/one", {"spec": {"size": 2}}).body["spec"]["size"] == 2


def test_a_deletion_that_a_finalizer_holds_goes_on_after_a_restart(tmp_path, make):
    path = f"/apis/{make.group}/v1/namespaces/default/widgets"
    with running(tmp_path / "data", make) as api:
        api.made(make.definitions, make.definition("widgets", "Widget"))
        held = make.widget("one")
        held["metadata"]["finalizers"] = ["example.com/hold"]
        api.made(path, held)
        api.delete(f"{make.definitions}/widgets.{make.group}")

    with running(tmp_path / "data", make) as api:
        assert api.post(path, make.widget("two")).code in {403, 405}
        assert "deletionTimestamp" in api.get(f"{path}/one").body["metadata"]
        assert api.patch(f"{path}/one", {"metadata": {"finalizers": None}}).code == 200
        assert api.get(f"{make.definitions}/widgets.{make.group}").code == 404


def test_rights_hold_at_once_after_a_restart(tmp_path, make):
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    binding = {
        "metadata": {"name": "carol"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "carol"}],
    }
    with running(tmp_path / "data", make) as api:
        api.made(f"{rbac}/clusterrolebindings", binding)

    tokens = {"carol": TokenUser("carol")}
    with running(tmp_path / "data", make, tokens=tokens) as api:
        api.call(lambda: api.server.add_token("carol", "carol"))
        carol = api.as_user("carol")
        assert carol.get(f"{CORE}/configmaps").code == 200
        assert carol.get(f"{CORE}/secrets").code == 403
        carol.close()


def test_kubeconfigs_of_an_earlier_run_stay_valid(tmp_path, make):
    with running(tmp_path / "data", make) as api:
        first = json.loads(api.server.kubeconfig())
        robin = json.loads(api.server.kubeconfig("robin", ("system:masters",)))

    with running(tmp_path / "data", make) as api:
        assert json.loads(api.server.kubeconfig()) == first
        context = ssl.create_default_context(cadata=first_authority(first))
        with tempfile.NamedTemporaryFile() as pair:
            user = robin["users"][0]["user"]
            pair.write(b64decode(user["client-certificate-data"]) + b64decode(user["client-key-data"]))
            pair.flush()
            context.load_cert_chain(pair.name)
        client = make.client(api.thread, token="", context=context)
        who = client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        assert who.body["status"]["userInfo"]["username"] == "robin"
        client.close()


def first_authority(kubeconfig):
    return b64decode(kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]).decode()


def test_service_account_tokens_of_an_earlier_run_stay_valid(tmp_path, make):
    with running(tmp_path / "data", make) as api:
        api.made(f"{CORE}/serviceaccounts", {"metadata": {"name": "robot"}})
        token = api.made(f"{CORE}/serviceaccounts/robot/token", {"spec": {}})["status"]["token"]

    with running(tmp_path / "data", make) as api:
        robot = api.as_user(token)
        who = robot.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        assert who.body["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"
        robot.close()


def test_the_port_of_the_last_run_is_taken_again_unless_somebody_has_it(tmp_path, make):
    with running(tmp_path / "data", make) as api:
        first = api.server.port
    with running(tmp_path / "data", make) as api:
        second = api.server.port
    with socket.create_server(("127.0.0.1", first)), running(tmp_path / "data", make) as api:
        third = api.server.port

    assert second == first
    assert third != first


def test_a_given_token_goes_before_the_kept_one(tmp_path, make):
    with running(tmp_path / "data", make) as api:
        kept = api.server.admin_token
    with running(tmp_path / "data", make, admin_token="mine") as api:
        assert api.get("/api/v1/namespaces").code == 200
        other = api.as_user(kept)
        assert other.get("/api/v1/namespaces").code == 401
        other.close()


def test_controllers_take_up_what_they_find(tmp_path, make):
    with running(tmp_path / "data", make) as api:
        api.made("/apis/apps/v1/namespaces/default/deployments", make.deployment("web", 2))

    names = ["deployment", "replicaset"]
    with running(tmp_path / "data", make, controllers=names) as api, api.watch(f"{CORE}/pods") as frames:
        pods = {frames.next()["object"]["metadata"]["name"] for _ in range(2)}
    with running(tmp_path / "data", make, controllers=names) as api:
        assert set(listed(api, f"{CORE}/pods")) == pods


def test_a_reset_empties_the_file_too(tmp_path, make):
    with running(tmp_path / "data", make) as api:
        api.made(f"{CORE}/configmaps", make.config_map("first"))
    with running(tmp_path / "data", make) as api:
        api.made(make.definitions, make.definition("widgets", "Widget"))
        api.made(f"/apis/{make.group}/v1/namespaces/default/widgets", make.widget("one"))
        api.delete("/apis/rbac.authorization.k8s.io/v1/clusterroles/view")
        api.thread.reset()
        assert listed(api, f"{CORE}/configmaps") == {}
        api.made(f"{CORE}/configmaps", make.config_map("second"))

    with running(tmp_path / "data", make) as api:
        assert set(listed(api, f"{CORE}/configmaps")) == {"second"}
        assert listed(api, make.definitions) == {}
        assert set(listed(api, "/api/v1/namespaces")) == {"default", "kube-system", "kube-public", "kube-node-lease"}
        assert api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/view").code == 200


def bodies(api):
    return api.call(
        lambda: {
            (table.group, table.plural, *key): record.body
            for table in api.server.store.tables()
            for key, record in table.records.items()
        }
    )


@pytest.mark.parametrize("seed", range(3))
def test_any_sequence_of_writes_is_the_same_after_a_restart(tmp_path, make, seed):
    random = Random(seed)
    paths = [f"{CORE}/configmaps", f"/apis/{make.group}/v1/namespaces/default/widgets"]
    with running(tmp_path / "data", make) as api:
        api.made(make.definitions, make.definition("widgets", "Widget"))
        for _ in range(150):
            path, name = random.choice(paths), f"n{random.randrange(12)}"
            body = make.widget(name) if "widgets" in path else make.config_map(name)
            match random.randrange(6):
                case 0 | 1:
                    body["metadata"]["finalizers"] = random.choice([None, ["example.com/hold"]])
                    api.post(path, body)
                case 2 | 3:
                    api.patch(f"{path}/{name}", {"metadata": {"labels": {"turn": str(random.random())}}})
                case 4:
                    api.delete(f"{path}/{name}")
                case _:
                    api.patch(f"{path}/{name}", {"metadata": {"finalizers": None}})
        before = bodies(api)

    with running(tmp_path / "data", make) as api:
        assert bodies(api) == before


def test_a_second_server_on_the_file_cannot_be_made(tmp_path, make):
    with running(tmp_path / "data", make), pytest.raises(ConfigError, match="in use by another server"):
        ServerThread(Options(data=tmp_path / "data"))


def test_a_server_that_could_not_start_lets_go_of_the_file(tmp_path, make):
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigError, match="cannot listen"):
        ServerThread(Options(data=tmp_path / "data", port=taken.getsockname()[1])).start()

    with running(tmp_path / "data", make) as api:
        assert api.get("/api/v1/namespaces").code == 200


def test_an_object_that_cannot_be_read_is_one_line(tmp_path, make):
    with running(tmp_path / "data", make) as api:
        api.made(f"{CORE}/configmaps", make.config_map("a"))
    other = sqlite3.connect(tmp_path / "data")
    other.execute("UPDATE objects SET body = '{' WHERE name = 'a'")
    other.commit()
    other.close()

    with pytest.raises(ConfigError, match="the data file is corrupt: cannot read configmaps/default/a") as caught:
        ServerThread(Options(data=tmp_path / "data")).start()
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("seed", seeds(range(200), 2))
def test_what_was_answered_outlives_a_kill(tmp_path, seed):
    """The server dies at a random moment while two clients create, change and delete: what they were told is there."""
    command = [sys.executable, "-m", "ctrlruntime.apiserver", "--controllers", "none", "--data", str(tmp_path / "data")]
    with subprocess.Popen(
        [*command, "--kubeconfig", str(tmp_path / "config")], stdout=subprocess.PIPE, text=True
    ) as process:
        port = int(process.stdout.readline().rpartition(":")[2])
        config = json.loads((tmp_path / "config").read_text())
        context = ssl.create_default_context(cadata=first_authority(config))
        token = config["users"][0]["user"]["token"]
        clients = [Killed(port, context, token, str(number), Random(f"{seed} {number}")) for number in range(2)]
        for client in clients:
            client.start()
        ends_after = Random(seed).randrange(1, 150)
        wait_for(lambda: sum(client.answered for client in clients) >= ends_after)
        process.kill()
        process.wait(LONGEST_WAIT)
        for client in clients:
            client.join(LONGEST_WAIT)

    objects, _ = left_in(tmp_path / "data")
    found = {
        name[3]: json.loads(body)["data"]["n"]
        for name, (_, body) in objects.items()
        if name[1] == "configmaps" and name[3][0] == "k"
    }
    for client in clients:
        for name, value in client.known.items():
            if name not in client.in_doubt:
                assert found.get(name) == value, name


class Killed(threading.Thread):
    """A client of a server that dies: `known` is what it was told last of each object; None: deleted."""

    def __init__(self, port, context, token, prefix, rng):
        super().__init__(daemon=True)
        self.connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=LONGEST_WAIT)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.prefix, self.rng, self.known, self.in_doubt, self.answered = prefix, rng, {}, set(), 0

    def run(self):
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(self.connection):
            for number in itertools.count():
                name, value = f"k{self.prefix}-{self.rng.randrange(20)}", str(number)
                self.in_doubt = {name}
                self.known[name] = self.send(name, value)
                self.answered += 1
                self.in_doubt = set()

    def send(self, name, value):
        """Create, change or delete an object; return its new value."""
        path = f"{CORE}/configmaps"
        body = json.dumps({"metadata": {"name": name}, "data": {"n": value}})
        if self.known.get(name) is None:
            self.connection.request("POST", path, body, self.headers)
        elif self.rng.random() < 0.3:
            value = None
            self.connection.request("DELETE", f"{path}/{name}", None, self.headers)
        else:
            self.connection.request("PUT", f"{path}/{name}", body, self.headers)
        answer = self.connection.getresponse()
        answer.read()
        assert answer.status in {200, 201}
        return value


def test_write_that_cannot_be_saved_is_not_confirmed_and_the_server_says_that_it_is_not_ready(tmp_path, make):
    with (
        ServerThread(Options(data=tmp_path / "data", controllers=[])) as thread,
        contextlib.closing(make.client(thread)) as api,
    ):
        api.made(f"{CORE}/configmaps", {"metadata": {"name": "first"}})
        file = thread.server._file
        pages = file._connection.execute("PRAGMA page_count").fetchone()[0]
        file._connection.execute(f"PRAGMA max_page_count = {pages}")
        large = {"metadata": {"name": "large"}, "data": {"a": "x" * 100_000}}

        refused = api.post(f"{CORE}/configmaps", large)
        unready = api.get("/readyz")

        assert (refused.code, refused.body["reason"]) == (500, "InternalError")
        assert "cannot write the data file" in refused.message
        assert "database or disk is full" in refused.message
        assert unready.code == 500
        assert b"[-]etcd failed: reason withheld" in unready.raw
        assert unready.raw.endswith(b"readyz check failed\n")
        assert api.get("/livez/etcd").code == 500
        assert api.get("/readyz", exclude=["etcd", "etcd-readiness"]).code == 200

        file._connection.execute("PRAGMA max_page_count = 1000000")
        assert api.post(f"{CORE}/configmaps", {"metadata": {"name": "last"}}).code == 201
        assert api.get("/readyz").code == 200

    objects, _ = left_in(tmp_path / "data")
    assert {"first", "large", "last"} <= {name[3] for name in objects}


def wait_for(condition, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
