"""The kubeconfig of a cluster that exists, taken whole."""

from __future__ import annotations

import json

import pytest
import yaml

from ctrlruntime.errors import ConfigError, TransportError
from ctrlruntime.testing import Environment
from ctrlruntime.testing.kubeconfig import load_default


def config(name: str, **user) -> dict:
    return {
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": "http://127.0.0.1:1", "certificate-authority": "ca.crt"}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }


def test_several_files_make_one_and_the_first_mention_counts(tmp_path):
    (tmp_path / "a").write_text(json.dumps(config("one", token="first")))
    (tmp_path / "b").write_text(json.dumps({**config("one", token="second"), "extra": 1}))
    (tmp_path / "c").write_text(json.dumps(config("two")))

    merged = load_default({"KUBECONFIG": f"{tmp_path}/a:{tmp_path}/missing:{tmp_path}/b:{tmp_path}/c"})

    assert merged["current-context"] == "one"
    assert [entry["name"] for entry in merged["users"]] == ["one", "two"]
    assert merged["users"][0]["user"]["token"] == "first"


def test_paths_in_it_become_absolute(tmp_path):
    (tmp_path / "a").write_text(json.dumps(config("one", tokenFile="/run/token")))

    merged = load_default({"KUBECONFIG": str(tmp_path / "a")})

    assert merged["clusters"][0]["cluster"]["certificate-authority"] == str(tmp_path / "ca.crt")
    assert merged["users"][0]["user"]["tokenFile"] == "/run/token"


def test_no_kubeconfig_is_an_error_that_names_the_paths(tmp_path):
    environment = Environment(environ={"USE_EXISTING_CLUSTER": "true", "KUBECONFIG": str(tmp_path / "none")})

    with pytest.raises(ConfigError, match="none; set KUBECONFIG"):
        environment.start()


@pytest.mark.parametrize("text", ["- a list", "a: [unclosed"])
def test_a_file_that_is_no_kubeconfig_is_named(tmp_path, text):
    (tmp_path / "bad").write_text(text)

    with pytest.raises(ConfigError, match="bad"):
        load_default({"KUBECONFIG": str(tmp_path / "bad")})


def test_an_existing_cluster_is_used_and_left_as_it_is(embedded):
    environ = {"USE_EXISTING_CLUSTER": "true", "KUBECONFIG": str(embedded.kubeconfig_path)}

    with Environment(environ=environ) as environment:
        name = environment.create_namespace()
        user = yaml.safe_load(environment.add_user("alice", ["devs"]))["users"][0]["user"]

    assert environment.backend == "existing"
    assert embedded.connection.request("GET", f"/api/v1/namespaces/{name}")["metadata"]["name"] == name
    assert (user["as"], user["as-groups"]) == ("alice", ["devs"])


def test_a_cluster_that_does_not_answer_fails_at_the_start(tmp_path):
    path = tmp_path / "config"
    tree = config("one", token="x")
    del tree["clusters"][0]["cluster"]["certificate-authority"]
    path.write_text(json.dumps(tree))
    environment = Environment(environ={"USE_EXISTING_CLUSTER": "true", "KUBECONFIG": str(path)})

    with pytest.raises(TransportError, match=r"http://127\.0\.0\.1:1/version"):
        environment.start()
