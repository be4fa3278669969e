"""Conversion webhooks: a custom resource in two versions that only a webhook can turn into each other, on both servers alike."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from pydantic import Field
from servers import LONGEST_WAIT
from webhook_bench import MUTATING, Bench, WebhookReceiver, json_patch
from webhook_receiver import Raw, Received

from ctrlruntime.api.meta.v1 import ObjectMeta
from ctrlruntime.api.object import Object
from ctrlruntime.testing import Environment
from ctrlruntime.webhook import Conversion

SCENARIOS: dict[str, Callable[[Bench], Any]] = {}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def scenario(function: Callable[[Bench], Any]) -> Callable[[Bench], Any]:
    SCENARIOS[function.__name__] = function
    return function


def convert(review: dict[str, Any]) -> dict[str, Any]:
    """The field `spec.v1f` of v1 is `spec.v2f` of v2."""
    request = review["request"]
    target = request["desiredAPIVersion"]
    converted = []
    for original in request["objects"]:
        found = json.loads(json.dumps(original))
        source, wanted = found["apiVersion"].split("/")[1], target.split("/")[1]
        found["apiVersion"] = target
        spec = found.get("spec", {})
        if f"{source}f" in spec:
            spec[f"{wanted}f"] = spec.pop(f"{source}f")
        converted.append(found)
    return {"result": {"status": "Success"}, "convertedObjects": converted}


def broken(_: dict[str, Any]) -> dict[str, Any]:
    return {"result": {"status": "Failure", "message": "boom"}}


class Kind:
    """The kind Conv in the group of one bench, served as v1 (stored) and v2."""

    def __init__(self, bench: Bench, answer: Callable[[dict[str, Any]], Any] = convert, **webhook: Any) -> None:
        self.bench = bench
        self.group = f"{bench.namespace}.example.com"
        bench.answer(answer, "/convert")
        body = self.definition(**webhook)
        answered = bench.post(DEFINITIONS, body)
        assert answered["code"] == 201, answered
        self.path = f"{DEFINITIONS}/{body['metadata']['name']}"
        bench.wait_for(f"/apis/{self.group}/v2/namespaces/{bench.namespace}/convs?resourceVersion=0")

    def definition(self, **webhook: Any) -> dict[str, Any]:
        def version(name: str) -> dict[str, Any]:
            spec = {f"{name}f": {"type": "string"}, "n": {"type": "integer", "default": 1}}
            parts = {"spec": spec, "status": {"n": {"type": "integer"}}}
            properties = {part: {"type": "object", "properties": fields} for part, fields in parts.items()}
            scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
            return {
                "name": name,
                "served": True,
                "storage": name == "v1",
                "subresources": {"status": {}, "scale": scale},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
            }

        client = {"clientConfig": self.bench.receiver.client("/convert"), "conversionReviewVersions": ["v1"], **webhook}
        return {
            "metadata": {"name": f"convs.{self.group}"},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"plural": "convs", "kind": "Conv"},
                "conversion": {"strategy": "Webhook", "webhook": client},
                "versions": [version("v1"), version("v2")],
            },
        }

    def at(self, version: str, name: str = "") -> str:
        return f"/apis/{self.group}/{version}/namespaces/{self.bench.namespace}/convs" + (f"/{name}" if name else "")

    def reviews(self) -> list[Received]:
        """What the webhook was asked about this kind; a server may still ask about the one of the scenario before."""
        asked = self.bench.receiver.at("/convert")
        return [one for one in asked if one.body["request"]["desiredAPIVersion"].startswith(f"{self.group}/")]

    def create(self, version: str, name: str, **metadata: Any) -> dict[str, Any]:
        head = {"apiVersion": f"{self.group}/{version}", "kind": "Conv"}
        body = {**head, "metadata": {"name": name, **metadata}, "spec": {f"{version}f": name}}
        return self.bench.post(self.at(version), body)

    def get(self, version: str, name: str = "") -> dict[str, Any]:
        return self.bench.request("GET", self.at(version, name))

    def watch(self, version: str, seconds: int, sink: list[Any]) -> threading.Thread:
        """Collect the events of a watch in the background; the thread ends with it."""
        ready = threading.Event()

        def run() -> None:
            connection = self.bench.server.connection
            parts = urlsplit(connection.url)
            opened = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=connection.tls, timeout=120)
            opened.request(
                "GET", f"{self.at(version)}?watch=1&timeoutSeconds={seconds}", headers=dict(connection.headers)
            )
            answer = opened.getresponse()
            ready.set()
            sink.extend(self.bench.cleaned(json.loads(line)) for line in answer)
            opened.close()

        thread = threading.Thread(target=run)
        thread.start()
        assert ready.wait(LONGEST_WAIT)
        return thread


@scenario
def each_version_reads_what_the_other_wrote(bench: Bench) -> Any:
    kind = Kind(bench)
    found = [kind.create("v1", "a"), kind.get("v1", "a"), kind.get("v2", "a")]
    found += [kind.create("v2", "b"), kind.get("v1", "b"), kind.get("v2"), kind.get("v1")]
    found.append(bench.patch(kind.at("v2", "a"), {"spec": {"v2f": "z"}}))
    found.append(bench.patch(kind.at("v2", "a"), {"spec": {"v2f": "z"}}))
    found.append(bench.patch(f"{kind.at('v2', 'a')}/status", {"status": {"n": 4}}))
    found.append(bench.patch(f"{kind.at('v2', 'a')}/scale", {"spec": {"replicas": 3}}))
    found += [kind.get("v1", "a"), bench.request("DELETE", kind.at("v2", "b")), kind.get("v1", "b")]
    return found


@scenario
def an_update_is_checked_in_its_own_version(bench: Bench) -> Any:
    kind = Kind(bench)
    kind.create("v1", "a")
    current = json.loads(json.dumps(bench.server.connection.request("GET", kind.at("v2", "a"))))
    current["spec"] = {"v2f": 5, "bogus": 1}
    refused = bench.request("PUT", kind.at("v2", "a"), current)
    current["spec"] = {"v2f": "five", "bogus": 1}
    changed = bench.request("PUT", kind.at("v2", "a"), current)
    return refused, changed, bench.request("PUT", kind.at("v2", "a"), current), kind.get("v1", "a")


@scenario
def finalizers_hold_across_versions(bench: Bench) -> Any:
    kind = Kind(bench)
    kind.create("v1", "a", finalizers=["example.com/f"])
    deleted = bench.request("DELETE", kind.at("v2", "a"))
    held = kind.get("v1", "a")
    freed = bench.patch(kind.at("v2", "a"), {"metadata": {"finalizers": None}})
    return deleted, held, freed, kind.get("v1", "a")


@scenario
def the_review_that_is_sent(bench: Bench) -> Any:
    found = []
    kind = Kind(bench)
    kind.create("v1", "a", labels={"l": "1"}, annotations={"x": "y"})
    bench.receiver.received.clear()
    kind.get("v2", "a")
    for one in kind.reviews():
        shown = {"query": one.query, "agent": one.headers["User-Agent"], "body": one.body}
        found.append(bench.cleaned(shown))
    return found[0]


@scenario
def no_review_asks_for_the_version_that_an_object_is_in(bench: Bench) -> Any:
    """Our conversion endpoint refuses such a review. Objects are stored in both versions here, and are read and written in both."""
    kind = Kind(bench)
    kind.create("v1", "a")
    kind.create("v2", "b")
    versions = kind.definition()["spec"]["versions"]
    for version in versions:
        version["storage"] = version["name"] == "v2"
    bench.patch(kind.path, {"spec": {"versions": versions}})
    before = len(kind.reviews())
    names = itertools.count()

    def is_stored_in_v2(_: Any) -> bool:
        kind.create("v1", f"d{next(names)}")
        return any(one.body["request"]["desiredAPIVersion"].endswith("/v2") for one in kind.reviews()[before:])

    bench.wait_for(kind.path, is_stored_in_v2)
    kind.create("v2", "c")
    codes = [kind.get(version, name)["code"] for version in ("v1", "v2") for name in ("", "a", "b", "c")]
    codes += [bench.patch(kind.at(version, "a"), {"spec": {"n": 2}})["code"] for version in ("v1", "v2")]
    asked = [one.body["request"] for one in kind.reviews()]
    assert {one["desiredAPIVersion"].split("/")[1] for one in asked} == {"v1", "v2"}
    assert not [one for one in asked if one["desiredAPIVersion"] in {o["apiVersion"] for o in one["objects"]}]
    return codes


@scenario
def the_old_review_version_is_spoken(bench: Bench) -> Any:
    kind = Kind(bench, conversionReviewVersions=["v9", "v1beta1", "v1"])
    kind.create("v1", "a")
    bench.receiver.received.clear()
    answer = kind.get("v2", "a")
    return answer, {one.body["apiVersion"] for one in kind.reviews()}


@scenario
def a_watch_shows_every_write_in_its_version(bench: Bench) -> Any:
    kind = Kind(bench)
    kind.create("v1", "a")
    kind.get("v2")
    events: list[Any] = []
    thread = kind.watch("v2", 3, events)
    kind.create("v1", "b")
    kind.create("v2", "c")
    bench.patch(kind.at("v1", "a"), {"spec": {"v1f": "w"}})
    bench.request("DELETE", kind.at("v1", "b"))
    thread.join()
    return events


@scenario
def metadata_and_tables_are_converted_too(bench: Bench) -> Any:
    def marking(review: dict[str, Any]) -> dict[str, Any]:
        answer = convert(review)
        for found in answer["convertedObjects"]:
            found["metadata"]["labels"] = {"seen": review["request"]["desiredAPIVersion"].split("/")[1]}
        return answer

    kind = Kind(bench, marking)
    kind.create("v1", "a")
    connection = bench.server.connection
    before = list(connection.headers)
    found = []
    for accept in (
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        "application/json;as=Table;g=meta.k8s.io;v=v1",
    ):
        connection.headers = [*(pair for pair in before if pair[0] != "Accept"), ("Accept", accept)]
        body = kind.get("v2")["body"]
        found.append(body.get("items") or [row["object"]["metadata"]["labels"] for row in body["rows"]])
    connection.headers = before
    return found


@scenario
def a_broken_webhook(bench: Bench) -> Any:
    kind = Kind(bench)
    kind.create("v1", "a")
    kind.get("v2", "a")
    bench.answer(broken, "/convert")
    found = [kind.get("v2", "a"), kind.get("v1", "a"), kind.create("v1", "b"), kind.create("v2", "c")]
    found += [bench.request("DELETE", kind.at("v2", "a")), bench.request("GET", f"{kind.at('v2', 'a')}/scale")]
    listed = kind.get("v2")
    # Which of the two depends on how far kube-apiserver's watch cache has come.
    found.append((listed["code"] in {429, 500}, "failed: boom" in listed["body"]["message"]))
    bench.answer(convert, "/convert")
    end = time.monotonic() + 20
    while (listed := kind.get("v2"))["code"] != 200:
        assert time.monotonic() < end, listed
        time.sleep(0.2)
    return [*found, [item["spec"] for item in listed["body"]["items"]]]


def _changing(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    def answer(review: dict[str, Any]) -> dict[str, Any]:
        found = convert(review)
        for one in found["convertedObjects"]:
            change(one)
        return found

    return answer


def _review(response: Any, kind: str = "ConversionReview", version: str = "apiextensions.k8s.io/v1") -> dict[str, Any]:
    return {"kind": kind, "apiVersion": version, "response": response}


def _echo(review: dict[str, Any]) -> dict[str, Any]:
    return {"uid": review["request"]["uid"], **convert(review)}


WRONG: dict[str, Callable[[dict[str, Any]], Any]] = {
    "failure": broken,
    "failure with a code": lambda _: {"result": {"status": "Failure", "message": "boom", "reason": "X", "code": 403}},
    "failure without message": lambda _: {"result": {"status": "Failure"}},
    "no result": lambda r: {"convertedObjects": convert(r)["convertedObjects"]},
    "no objects": lambda _: {"result": {"status": "Success"}},
    "too many objects": lambda r: {**convert(r), "convertedObjects": convert(r)["convertedObjects"] * 2},
    "uid": lambda r: _review({**convert(r), "uid": "x"}),
    "no response": lambda _: {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1"},
    "kind of review": lambda r: _review(_echo(r), kind="Foo"),
    "no kind of review": lambda r: Raw(json.dumps({"response": _echo(r)}).encode()),
    "version of review": lambda r: _review(_echo(r), version="apiextensions.k8s.io/v1beta1"),
    "nothing": lambda _: Raw(b""),
    "no JSON": lambda _: Raw(b"hello"),
    "HTTP 500": lambda _: Raw(b"nope", 500, headers={"Content-Type": "text/plain"}),
    "HTTP 404": lambda _: Raw(b"nope", 404, headers={"Content-Type": "text/plain"}),
    "unconverted": _changing(lambda o: o.update(apiVersion=o["apiVersion"].replace("v2", "v1"))),
    "group": _changing(lambda o: o.update(apiVersion="other.example.com/v2")),
    "kind": _changing(lambda o: o.update(kind="Foo")),
    "name": _changing(lambda o: o["metadata"].update(name="q")),
    "namespace": _changing(lambda o: o["metadata"].update(namespace="q")),
    "object's uid": _changing(lambda o: o["metadata"].update(uid="q")),
    "no metadata": _changing(lambda o: o.pop("metadata")),
    "bad label": _changing(lambda o: o["metadata"].update(labels={"a b": "c"})),
    "label of another type": _changing(lambda o: o["metadata"].update(labels={"a": 1})),
    "finalizers are put back": _changing(lambda o: o["metadata"].update(finalizers=["example.com/b"])),
    "generation is put back": _changing(lambda o: o["metadata"].update(generation=77)),
    "version is put back": _changing(lambda o: o["metadata"].update(resourceVersion="3")),
    "labels may change": _changing(lambda o: o["metadata"].update(labels={"a": "b"})),
    "annotations may change": _changing(lambda o: o["metadata"].update(annotations={"a": "b"})),
    "unknown fields go": _changing(lambda o: o["spec"].update(bogus=1)),
    "what does not fit the schema stays": _changing(lambda o: o["spec"].update(v2f=1)),
    "defaults are not set again": _changing(lambda o: o["spec"].pop("n")),
}


@scenario
def answers_that_are_wrong(bench: Bench) -> Any:
    kind = Kind(bench)
    kind.create("v1", "a")
    found = {}
    for name, answer in WRONG.items():
        bench.answer(answer, "/convert")
        found[name] = kind.get("v2", "a")
    return found


@scenario
def a_webhook_nobody_runs(bench: Bench) -> Any:
    found = []
    service = {"namespace": bench.namespace, "name": "svc", "path": "/x"}
    for client in ({"url": "https://127.0.0.1:1/x"}, {"service": service}):
        kind = Kind(bench, clientConfig={**client, "caBundle": bench.receiver.ca_bundle})
        kind.create("v1", "a")
        found.append(kind.get("v2", "a"))
        bench.request("DELETE", kind.path)
        end = time.monotonic() + 20
        while bench.request("GET", kind.path)["code"] != 404:
            assert time.monotonic() < end
            time.sleep(0.1)
    return found


@scenario
def admission_sees_the_version_it_asked_for(bench: Bench) -> Any:
    kind = Kind(bench)
    rules = bench.rule("convs", groups=(kind.group,), apiVersions=["v1"])
    bench.register(MUTATING, bench.webhook(rules=rules))
    bench.answer(lambda _: json_patch({"op": "replace", "path": "/spec/v1f", "value": "changed"}))
    return kind.create("v2", "a"), kind.get("v1", "a"), bench.reviews()


@scenario
def labels_and_annotations_of_a_new_object_are_kept(bench: Bench) -> Any:
    """By a `Conversion` of ours with converters that make new metadata. Admission sees the object before it has a uid."""
    group = f"{bench.namespace}.example.com"

    class V1(Object, group=group, version="v1", kind="Conv"):
        spec: dict[str, Any] = Field(default_factory=dict)

    class V2(Object, group=group, version="v2", kind="Conv"):
        spec: dict[str, Any] = Field(default_factory=dict)

    def converter(source: str, target: str, kind: type[V1 | V2]) -> Callable[[Any], Any]:
        def convert(obj: V1 | V2) -> V1 | V2:
            spec = {name.replace(source, target): value for name, value in obj.spec.items()}
            metadata = ObjectMeta(name=obj.metadata.name, annotations={f"made-{target}": "yes"})
            return kind(metadata=metadata, spec=spec)

        return convert

    conversion = Conversion(V1).spoke(V2, to_hub=converter("v2", "v1", V1), from_hub=converter("v1", "v2", V2))

    def answer(review: dict[str, Any]) -> dict[str, Any]:
        request = review["request"]
        version = request["desiredAPIVersion"].split("/")[1]
        sent = [json.dumps(one).encode() for one in request["objects"]]
        converted = [json.loads(conversion.convert_raw(raw, version)) for raw in sent]
        return {"result": {"status": "Success"}, "convertedObjects": converted}

    kind = Kind(bench, answer)
    rules = bench.rule("convs", groups=(kind.group,), apiVersions=["v1"])
    bench.register(MUTATING, bench.webhook(rules=rules))
    bench.answer(lambda _: {"allowed": True})
    kept = {"labels": {"a": "1"}, "annotations": {"b": "2"}}
    found = [kind.create("v2", "a", **kept), kind.create("v1", "b", **kept)]
    found += [kind.create("v2", "", generateName="g-", **kept)]
    generated = found[-1]["body"]["metadata"].pop("name")
    found += [kind.get(version, name) for version in ("v1", "v2") for name in ("a", "b")]
    metadata = [one["body"]["metadata"] for one in found]
    assert all(
        one["labels"] == kept["labels"] and kept["annotations"].items() <= one["annotations"].items()
        for one in metadata
    )
    assert generated.startswith("g-")
    reviewed = [one["request"]["object"]["metadata"] for one in bench.reviews()]
    assert [one["labels"] for one in reviewed] == [kept["labels"]] * 3
    return found


@pytest.fixture(scope="module")
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver() as running:
        yield running


@pytest.fixture(params=list(SCENARIOS))
def run(request: pytest.FixtureRequest, receiver: WebhookReceiver) -> Iterator[Callable[[Environment], Any]]:
    def on(server: Environment) -> Any:
        bench = Bench(server, receiver)
        try:
            return SCENARIOS[request.param](bench)
        finally:
            bench.answer(convert, "/convert")
            bench.request("DELETE", f"{DEFINITIONS}/convs.{bench.namespace}.example.com")
            bench.close()

    yield on
    receiver.received.clear()


def test_both_servers_convert_alike(run, embedded_server, real_server):
    expected = run(real_server)

    assert run(embedded_server) == expected
