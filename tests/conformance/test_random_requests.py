"""The same random requests are answered alike by both servers: statuses, headers, messages, objects and their owners.

Nothing is changed: writes are dry runs. Nobody else writes, so that what is there is the same on both servers.
"""

from __future__ import annotations

import contextlib
import copy
import http.client
import json
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
import yaml
from apply_sequences import GROUP
from field_variants import ODD_NUMBERS, ODD_TEXTS, with_field
from random_patches import MAKERS, Patches
from random_queries import ACCEPTS, FIELDS, KEYS, Queries, encoded
from scenario.normal import Normalizer
from strategic_patches import BASES
from test_builtin_kinds import path_of, placed, without_go
from test_differential import embedded_alone, pair, patched, real_alone
from test_every_field import NOT_SENT, OBJECTS, fields, schema_of, unprotected

from ctrlruntime.errors import TransportError
from ctrlruntime.testing import Environment

__all__ = ["embedded_alone", "pair", "real_alone"]

TRIES = 40
Sent = tuple[str, str, str | None, dict[str, str]]
"""(method, path, body, headers)."""


def exchanged(server: Environment, sent: Sent) -> Any:
    """Return what a server answers, without what differs between any two servers."""
    method, path, body, headers = sent
    if method == "WATCH":
        return watched(server, path, headers)
    try:
        status, answered, data = server.connection.exchange(
            method, path, None if body is None else body.encode(), headers
        )
    except TransportError as error:  # kube-apiserver panics
        return str(error).partition(": ")[2]
    text = data.decode()
    try:
        found: Any = json.loads(text)
    except ValueError:
        found = yaml.load(text, yaml.BaseLoader) if "yaml" in (answered.get("Content-Type") or "") else text
    for column in found.get("columnDefinitions") or () if isinstance(found, dict) else ():
        del column["description"]
    shown = {"headers": {name.lower(): value for name, value in answered.items() if name != "Warning"}}
    warnings = sorted(answered.get_all("Warning") or ())
    answer = {"status": status, "warnings": warnings, "body": found, **shown}
    if status >= 400 and isinstance(found, dict):
        details = {**(found.get("details") or {})}
        causes = [{**each, "message": plain(each["message"])} for each in details.get("causes") or ()]
        message = plain(found["message"])
        if GROUP in path and len(causes) > 1:  # Go walks maps in random order
            causes, message = sorted(causes, key=str), ""
        answer["body"] = {**found, "message": message, "details": {**details, "causes": causes}}
    return Normalizer({}, f"{path} {body}").apply([answer])[0]


def watched(server: Environment, path: str, headers: dict[str, str]) -> Any:
    """Return the answer to a watch: the frames of the initial state, which a bookmark or a short silence ends, or the refusal."""
    address = server.connection.url.removeprefix("https://")
    connection = http.client.HTTPSConnection(address, context=server.connection.tls, timeout=30)
    frames: list[Any] = []
    try:
        connection.request("GET", path, headers={**dict(server.connection.headers), **headers})
        socket = connection.sock
        answer = connection.getresponse()
        kind = answer.headers.get("Content-Type")
        if answer.status != 200:
            return answer.status, kind, plain(str(json.loads(answer.read()).get("message"))) if "json" in kind else kind
        socket.settimeout(SILENCE)
        with contextlib.suppress(TimeoutError):
            while line := answer.readline():
                frames.append(json.loads(line) if line.startswith(b"{") else line.decode())
                if isinstance(frames[-1], dict) and frames[-1]["type"] == "BOOKMARK":
                    break
    finally:
        connection.close()
    return answer.status, kind, sorted(map(frame_shown, frames), key=str)


SILENCE = 0.3  # seconds


def frame_shown(frame: Any) -> Any:
    """What is compared of a frame: its type, and the kind and name of its object, or the rows of its table."""
    if isinstance(frame, str):
        return frame.partition(":")[0]
    found = frame["object"]
    rows = [(row["cells"][0], sorted(row["object"] or {})) for row in found.get("rows") or ()]
    message = found.get("message") if frame["type"] == "ERROR" else None
    return frame["type"], found.get("kind"), found["metadata"].get("name"), rows, plain(message) if message else None


_VERSION = re.compile(r"Too large resource version: \d+")
_OBJECT = re.compile(r'Invalid value: "\{.*\}": ', re.DOTALL)


def plain(text: str) -> str:
    """A message without whole objects, whose fields have another order in Go."""
    return _VERSION.sub("Too large resource version: RV", _OBJECT.sub("Invalid value: OBJECT: ", without_go(text)))


def differences(
    pair, requests: Iterator[tuple[Any, Callable[[Environment], Sent]]], tries: int = TRIES
) -> Iterator[str]:
    """Yield what the servers answered differently; Go walks maps in random order, so kube-apiserver is asked again."""
    for seed, make in requests:
        asked = [make(server) for server in pair]
        left, right = (exchanged(server, sent) for server, sent in zip(pair, asked, strict=True))
        again = ([exchanged(server, sent) for server, sent in zip(pair, asked, strict=True)] for _ in range(tries))
        if left != right and not any(one == other for one, other in again):
            yield f"{seed}: {asked[0]}\nembedded: {left}\nreal:     {right}"


# Patches

GIZMO = {
    "kind": "Gizmo",
    "metadata": {"labels": {"app": "a"}, "annotations": {"a": "1"}, "finalizers": ["x.io/a", "x.io/b"]},
    "spec": {
        "replicas": 2,
        "mode": "B",
        "port": "http",
        "numbers": [1, 2],
        "tags": ["x", "<y>"],
        "steps": ["x", "x"],
        "parts": [{"name": "p", "size": 1, "tags": ["x"], "options": {"a": "x"}}, {"name": "q", "zone": "there"}],
        "whole": {"a": "x", "b": "y"},
        "options": {"a": "x", "b/c": "y", "~d": "z"},
        "groups": {"g": {"a": "x"}},
        "free": {"a": "x", "b": [1, {"c": 2}], "n": 1.5},
        "template": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"a": 1}},
    },
}
PATCHED = [base for base in BASES if base[1] in {"deployments", "pods", "services", "configmaps"}]
PATCHED.append((f"{GROUP}/v1", "gizmos", GIZMO))


@pytest.fixture(scope="module")
def patched_pair(pair):
    api_version, plural, base = PATCHED[-1]
    for server in pair:
        body = {**base, "apiVersion": api_version, "metadata": {**base["metadata"], "name": "it"}}
        server.connection.request("POST", patched(api_version, plural), body)
    return pair


def patches(pair, number: int, kind: str, seeds: range):
    api_version, plural, _ = PATCHED[number]
    path = f"{patched(api_version, plural)}/it"
    present = pair[0].connection.request("GET", path)
    for seed in seeds:
        random = Random(f"{plural}-{kind}-{seed}")
        text = MAKERS[kind](Patches(present, random))
        more = random.choice(["", "", "&fieldValidation=Strict", "&fieldValidation=Warn", "&fieldValidation=Ignore"])
        sent = ("PATCH", f"{path}?dryRun=All&fieldManager=test{more}", text, {"Content-Type": kind})
        yield seed, lambda _, sent=sent: sent


@pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.partition("/")[2].partition("-")[0])
@pytest.mark.parametrize("number", range(len(PATCHED)), ids=[plural for _, plural, _ in PATCHED])
def test_patches_are_answered_alike(patched_pair, number: int, kind: str) -> None:
    assert list(differences(patched_pair, patches(patched_pair, number, kind, range(60)))) == []


@pytest.mark.thorough
@pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.partition("/")[2].partition("-")[0])
@pytest.mark.parametrize("number", range(len(PATCHED)), ids=[plural for _, plural, _ in PATCHED])
def test_many_patches_are_answered_alike(patched_pair, number: int, kind: str) -> None:
    assert list(differences(patched_pair, patches(patched_pair, number, kind, range(300, 600)))) == []


# Lists and watches

ROOT = "/api/v1/namespaces/queries"
PATHS = {plural: f"{ROOT}/{plural}" for plural in FIELDS}
PATHS["gizmos"] = f"/apis/{GROUP}/v1/namespaces/queries/gizmos"
CLUSTER_WIDE = ("pods", "secrets", "gizmos")
"""Kinds of which neither server has objects of its own."""
MEDIA = "application/json"


@pytest.fixture(scope="module")
def queried_pair(pair):
    """Both servers with a few objects of each kind that is read, written in the same order; and versions and tokens of each."""
    return [(server, *population(server)) for server in pair]


def population(server: Environment) -> tuple[dict[str, str], dict[str, list[str]]]:
    request = server.connection.request
    request("POST", "/api/v1/namespaces", {"metadata": {"name": "queries"}})
    request("POST", f"{ROOT}/serviceaccounts", {"metadata": {"name": "default"}})
    random, made = Random("population"), list[str]()
    for number in range(5):
        for plural, path in PATHS.items():
            labels = {
                key: random.choice(("a", "b", "", "1", "5", "x_y", "in")) for key in KEYS[:4] if random.random() < 0.6
            }
            body = {"metadata": {"name": f"s{number}", "labels": labels}, **BODIES[plural](number)}
            made.append(request("POST", path, body)["metadata"]["resourceVersion"])
    versions = {"first": made[0], "last": made[-1], "future": str(int(made[-1]) + 1_000_000)}
    tokens = {
        plural: [request("GET", f"{path}?limit={limit}")["metadata"]["continue"] for limit in (1, 3)]
        for plural, path in PATHS.items()
    }
    return versions, tokens


BODIES: dict[str, Callable[[int], dict[str, Any]]] = {
    "configmaps": lambda number: {"data": {"n": str(number)}},
    "pods": lambda number: {
        "spec": {
            "containers": [{"name": "c", "image": "x"}],
            "schedulerName": ("none", "default")[number % 2],
            "restartPolicy": ("Always", "Never")[number % 2],
            "hostNetwork": number == 4,
        }
    },
    "secrets": lambda number: (
        {"type": "Opaque"} if number else {"type": "kubernetes.io/basic-auth", "stringData": {"username": "a"}}
    ),
    "gizmos": lambda number: {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Gizmo",
        "spec": {"mode": "AB"[number % 2], "replicas": number, "whole": {"a": "a"}},
    },
    "events": lambda number: {
        "involvedObject": {"kind": "Pod", "name": f"s{number}", "namespace": "queries"},
        "reason": "Made",
        "type": ("Normal", "Warning")[number % 2],
        "source": {"component": "kubelet"},
    },
    "services": lambda number: {"spec": {"clusterIP": "None", "ports": [{"port": 80}]}},
}


def selected(seeds: range):
    for seed in seeds:
        random = Random(f"selectors-{seed}")
        plural = random.choice(list(PATHS))
        selectors = Queries(random).selectors(plural)
        query = encoded(selectors)
        match random.randrange(4):
            case 0:
                sent = ("DELETE", f"{PATHS[plural]}?dryRun=All&{query}", None, {})
            case 1 if all(word not in query for word in ("watch",)):
                sent = ("WATCH", f"{PATHS[plural]}?{INITIAL}&{query}", None, {})
            case _:
                sent = ("GET", f"{PATHS[plural]}?{query}", None, {})
        yield f"{seed} {selectors}", lambda _, sent=sent: sent


INITIAL = (
    "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=30"
)


def test_selectors_are_answered_alike(queried_pair) -> None:
    assert list(differences([each[0] for each in queried_pair], selected(range(300)), tries=3)) == []


@pytest.mark.thorough
def test_many_selectors_are_answered_alike(queried_pair) -> None:
    assert list(differences([each[0] for each in queried_pair], selected(range(300, 2300)), tries=3)) == []


def optioned(queried, seeds: range):
    known = {id(server): (versions, tokens) for server, versions, tokens in queried}
    for seed in seeds:

        def make(server: Environment, seed: int = seed) -> Sent:
            versions, tokens = known[id(server)]
            random = Random(f"options-{seed}")
            plural = random.choice(list(PATHS))
            path = PATHS[plural]
            if plural in CLUSTER_WIDE and random.random() < 0.5:
                path = path.replace("/namespaces/queries", "")
            options = Queries(random).options(plural, versions, tokens[plural])
            accept = random.choice(ACCEPTS) if random.random() < 0.5 else MEDIA
            is_watch = random.random() < 0.3
            if is_watch:
                options = {"watch": random.choice(("true", "1", "")), "timeoutSeconds": "1", **options}
            return ("WATCH" if is_watch else "GET"), f"{path}?{encoded(options)}", None, {"Accept": accept}

        yield f"{seed}", make


def test_options_of_reads_are_answered_alike(queried_pair) -> None:
    assert list(differences([each[0] for each in queried_pair], optioned(queried_pair, range(150)), tries=2)) == []


@pytest.mark.thorough
def test_many_options_of_reads_are_answered_alike(queried_pair) -> None:
    assert (
        list(differences([each[0] for each in queried_pair], optioned(queried_pair, range(150, 1150)), tries=2)) == []
    )


# Objects of every built-in kind with a few random fields


def objects(pair, path: str, seeds: range):
    schema, schemas = schema_of(pair[0], path)
    known = [field for field in fields(schema, schemas) if field[0] not in NOT_SENT]
    base = unprotected(OBJECTS[path])
    for seed in seeds:
        random = Random(f"{path}-{seed}")
        body = thinned(base, random) if random.random() < 0.5 else copy.deepcopy(base)
        for *way, value in random.sample(known, min(len(known), random.choice((1, 2, 4)))):
            odd = ODD_VALUES.get(type(value), ()) if random.random() < 0.15 else ()
            body = with_field(body, (*way, random.choice(odd) if odd else value))
        text = json.dumps(placed(body, "patches"))
        sent = ("POST", f"{path_of(path, 'patches')}?dryRun=All&fieldManager=test", text, {"Content-Type": MEDIA})
        yield seed, lambda _, sent=sent: sent


ODD_VALUES = {int: (*ODD_NUMBERS, None), str: (*ODD_TEXTS, None), bool: (False, None)}


def thinned(tree: Any, random: Random, depth: int = 0) -> Any:
    """Return the tree without some of its fields."""
    if isinstance(tree, list):
        return [thinned(item, random, depth + 1) for item in tree]
    if not isinstance(tree, dict):
        return tree
    return {
        key: thinned(value, random, depth + 1)
        for key, value in tree.items()
        if key == "name" or depth < 1 or random.random() < 0.9
    }


@pytest.mark.parametrize("path", OBJECTS)
def test_random_objects_are_answered_alike(pair, path: str) -> None:
    assert list(differences(pair, objects(pair, path, range(6)))) == []


@pytest.mark.thorough
@pytest.mark.parametrize("path", OBJECTS)
def test_many_random_objects_are_answered_alike(pair, path: str) -> None:
    assert list(differences(pair, objects(pair, path, range(6, 50)))) == []
