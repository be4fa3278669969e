"""Admission webhooks: both servers ask the same of a webhook, and make the same of its answer.

Each scenario is a function that does something on a bench and returns what came of it. It runs on both servers; the results are equal.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from webhook_bench import ADMISSION, MUTATING, VALIDATING, Bench, WebhookReceiver, json_patch
from webhook_receiver import Raw

from ctrlruntime.testing import Environment

SCENARIOS: dict[str, Callable[[Bench], Any]] = {}


def scenario(function: Callable[[Bench], Any]) -> Callable[[Bench], Any]:
    SCENARIOS[function.__name__] = function
    return function


@pytest.fixture(scope="module")
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver() as running:
        yield running


# What a webhook is asked


@scenario
def reviews_of_create_update_and_delete(bench: Bench) -> Any:
    bench.register(VALIDATING, bench.webhook())
    maps = f"{bench.path}/configmaps"
    bench.post(f"{maps}?fieldManager=me&fieldValidation=Strict", {"metadata": {"name": "a"}, "data": {"k": "1"}})
    bench.post(f"{maps}?dryRun=All", {"metadata": {"name": "b"}})
    bench.patch(f"{maps}/a?fieldManager=you", {"data": {"k": "2"}})
    bench.patch(f"{maps}/a", {"data": {"k": "2"}})
    bench.patch(
        f"{maps}/a", [{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/f"]}], "json-patch+json"
    )
    bench.request("DELETE", f"{maps}/a?propagationPolicy=Background")
    bench.patch(f"{maps}/a", {"metadata": {"finalizers": None}})
    bench.post(maps, {"metadata": {"name": "c", "labels": {"x": "1"}}})
    bench.request("DELETE", f"{maps}?labelSelector=x")
    bench.request("DELETE", f"{maps}/nobody")
    return bench.reviews()


@scenario
def a_mutating_webhook_sees_a_new_object_before_the_server_completes_it(bench: Bench) -> Any:
    bench.register(MUTATING, bench.webhook(rules=bench.rule("deployments", "configmaps")))
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    bench.post(
        f"/apis/apps/v1/namespaces/{bench.namespace}/deployments",
        {
            "metadata": {"name": "d", "generation": 7, "uid": "x", "creationTimestamp": "2020-01-01T00:00:00Z"},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": pod},
            "status": {"replicas": 3},
        },
    )
    return bench.reviews()[:1]


@scenario
def a_generated_name_is_known_to_validating_webhooks_alone(bench: Bench) -> Any:
    bench.register(MUTATING, bench.webhook("/m"))
    bench.register(VALIDATING, bench.webhook("/v"))
    answer = bench.post(f"{bench.path}/configmaps", {"metadata": {"generateName": "gen-"}})
    before, after = bench.reviews("/m")[0]["request"], bench.reviews("/v")[0]["request"]
    name = answer["body"]["metadata"]["name"]
    return before, after["name"] == after["object"]["metadata"]["name"] == name


@scenario
def an_apply_is_a_create_or_an_update(bench: Bench) -> Any:
    bench.register(VALIDATING, bench.webhook())
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}}
    for _ in range(2):
        bench.patch(f"{bench.path}/configmaps/a?fieldManager=me&force=true", body, "apply-patch+yaml")
    return bench.reviews()


@scenario
def subresources_are_asked_about_under_their_own_kind(bench: Bench) -> Any:
    bench.register(
        VALIDATING,
        bench.webhook(
            rules=bench.rule(
                "*/status", "*/scale", "pods/eviction", "pods/binding", "serviceaccounts/token", "pods/exec"
            )
        ),
    )
    sets = f"/apis/apps/v1/namespaces/{bench.namespace}/replicasets"
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}}
    spec["template"]["spec"] = {"containers": [{"name": "c", "image": "i"}]}
    bench.post(sets, {"metadata": {"name": "r"}, "spec": spec})
    bench.wait_for(f"{sets}/r", lambda found: found["status"].get("observedGeneration"))
    bench.patch(f"{sets}/r/scale?fieldManager=me", {"spec": {"replicas": 0}})
    scales = [one for one in bench.reviews() if one["request"]["subResource"] == "scale"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "nobody"}}
    answers = [
        bench.post(f"{bench.path}/pods/nobody/eviction", eviction),
        bench.request("GET", f"{bench.path}/pods/nobody/exec?command=ls&command=-l&stdin=true"),
    ]
    parts = ("eviction", "exec")
    return scales, answers, [one for one in bench.reviews() if one["request"]["subResource"] in parts]


@scenario
def reviews_of_access_are_admitted_too(bench: Bench) -> Any:
    kinds = ("subjectaccessreviews", "localsubjectaccessreviews", "tokenreviews", "selfsubjectreviews")
    bench.register(VALIDATING, bench.webhook(rules=bench.rule(*kinds), namespaceSelector=None))
    bench.answer(lambda review: {"allowed": False, "status": {"message": review["request"]["kind"]["kind"]}})
    spec = {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": bench.namespace}}
    local = f"/apis/authorization.k8s.io/v1/namespaces/{bench.namespace}/localsubjectaccessreviews"
    return [
        bench.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec}),
        bench.post(local, {"metadata": {"namespace": bench.namespace}, "spec": spec}),
        bench.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "t"}}),
        bench.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}),
    ]


@scenario
def namespaces_are_matched_by_their_own_labels(bench: Bench) -> Any:
    selector = {"matchLabels": {"bench": bench.namespace}}
    bench.register(
        VALIDATING, bench.webhook(rules=bench.rule("namespaces", "namespaces/*"), namespaceSelector=selector)
    )
    path = f"/api/v1/namespaces/{bench.namespace}"
    for labels in ({"bench": bench.namespace}, {"x": "1"}, {"bench": None}, {"x": "2"}):
        bench.patch(path, {"metadata": {"labels": labels}})
    return bench.reviews()


@scenario
def scopes_and_stars(bench: Bench) -> Any:
    called = []
    rules = {
        "cluster": bench.rule("*", scope="Cluster"),
        "namespaced": bench.rule("*", scope="Namespaced"),
        "pods/*": bench.rule("pods/*"),
        "*/*": bench.rule("*/*", groups=("",)),
        "other group": bench.rule("configmaps", groups=("apps",)),
        "other version": bench.rule("configmaps", apiVersions=["v2"]),
        "delete": bench.rule("configmaps", operations=["DELETE"]),
    }
    entries = [
        bench.webhook(f"/{number}", f"n{number}.example.com", rules=one) for number, one in enumerate(rules.values())
    ]
    bench.register(VALIDATING, *entries)
    pod = {"metadata": {"name": "p"}, "spec": {"serviceAccountName": "x", "containers": [{"name": "c", "image": "i"}]}}
    for path, body in (
        (f"{bench.path}/configmaps", {"metadata": {"name": "a"}}),
        (f"{bench.path}/pods", pod),
        (f"{bench.path}/serviceaccounts/default/token", {"spec": {}}),
    ):
        bench.post(f"{path}?dryRun=All", body)
        called.append(sorted(bench.paths()))
    bench.patch(f"/api/v1/namespaces/{bench.namespace}?dryRun=All", {"metadata": {"labels": {"x": "1"}}})
    return [*called, sorted(bench.paths())]


@scenario
def objects_are_selected_old_or_new(bench: Bench) -> Any:
    bench.register(VALIDATING, bench.webhook(objectSelector={"matchLabels": {"s": "1"}}))
    maps = f"{bench.path}/configmaps"
    bench.post(maps, {"metadata": {"name": "a"}})
    for labels in ({"s": "1"}, {"s": None}, {"t": "1"}, {"s": "1"}):
        bench.patch(f"{maps}/a", {"metadata": {"labels": labels}})
    bench.request("DELETE", f"{maps}/a")
    return [(one["request"]["operation"], one["request"]["object"]) for one in bench.reviews()]


@scenario
def webhook_configurations_are_never_intercepted(bench: Bench) -> Any:
    # It ends by itself: a configuration that refused everything would leave no way back.
    bench.register(
        VALIDATING,
        bench.webhook(rules=bench.rule("*", groups=("admissionregistration.k8s.io",)), namespaceSelector=None),
    )
    bench.answer(lambda _: {"allowed": False})
    body = {"metadata": {"name": f"x-{bench.namespace}"}, "webhooks": []}
    return bench.post(f"{ADMISSION}/{VALIDATING}?dryRun=All", body), bench.paths()


# Versions


@scenario
def an_equivalent_version_is_converted(bench: Bench) -> Any:
    rules = bench.rule("horizontalpodautoscalers", groups=("autoscaling",), apiVersions=["v1"])
    bench.register(MUTATING, bench.webhook(rules=rules))
    bench.answer(
        lambda _: json_patch(
            {"op": "add", "path": "/spec/minReplicas", "value": 2},
            {"op": "replace", "path": "/spec/targetCPUUtilizationPercentage", "value": 77},
        )
    )
    target = {"type": "Utilization", "averageUtilization": 50}
    spec = {
        "maxReplicas": 3,
        "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    }
    path = f"/apis/autoscaling/v2/namespaces/{bench.namespace}/horizontalpodautoscalers"
    return bench.post(path, {"metadata": {"name": "h"}, "spec": spec}), bench.reviews()


@scenario
def an_exact_rule_leaves_other_versions_alone(bench: Bench) -> Any:
    rules = bench.rule("horizontalpodautoscalers", groups=("autoscaling",), apiVersions=["v1"])
    bench.register(VALIDATING, bench.webhook(rules=rules, matchPolicy="Exact"))
    spec = {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}
    for version in ("v2", "v1"):
        path = f"/apis/autoscaling/{version}/namespaces/{bench.namespace}/horizontalpodautoscalers"
        bench.post(path, {"metadata": {"name": f"h{version}"}, "spec": spec})
    return [one["request"]["name"] for one in bench.reviews()]


@scenario
def the_old_review_version_is_spoken(bench: Bench) -> Any:
    bench.register(MUTATING, bench.webhook(admissionReviewVersions=["v1beta1", "v1"]))
    remove = base64.b64encode(b'[{"op":"remove","path":"/data/a"}]').decode()
    answers = (
        {"allowed": True},
        {"allowed": True, "patch": remove},
        {"allowed": True, "patchType": "JSONPatch"},
        {"allowed": False},
    )
    found = []
    for response in answers:
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1", "response": response}
        bench.answer(lambda _, review=review: review)
        found.append(bench.config_map())
    bench.answer(
        lambda _: {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": {"allowed": True}}
    )
    return found, bench.config_map(), {one["apiVersion"] for one in bench.reviews()} == {"admission.k8s.io/v1beta1"}


# What comes of an answer

DENIALS: list[dict[str, Any]] = [
    {},
    {"status": {"message": "no way"}},
    {"status": {"message": "no way", "code": 422}},
    {"status": {"message": "no way", "code": 200}},
    {"status": {"message": "no way", "code": 503}},
    {"status": {"reason": "Forbidden"}},
    {"status": {"reason": "Forbidden", "code": 403, "message": "m", "details": {"name": "q", "retryAfterSeconds": 3}}},
    {"status": {"status": "Success", "message": "m"}},
    {"status": {"message": "", "code": 403}},
    {"status": {"message": "m", "details": {"causes": [{"reason": "r", "message": "m", "field": "f"}]}}},
    {"warnings": ["w1", 'w "2"']},
]


@scenario
def denials(bench: Bench) -> Any:
    found = []
    for plural in (MUTATING, VALIDATING):
        bench.register(plural, bench.webhook())
        for denial in DENIALS:
            bench.answer(lambda _, denial=denial: {"allowed": False, **denial})
            found.append(bench.config_map())
        bench.unregister()
    return found


@scenario
def warnings(bench: Bench) -> Any:
    bench.register(VALIDATING, bench.webhook())
    found = []
    for texts in (
        ["w1", 'w "2"', "w1", "back\\slash", "", "line\nbreak", "é" * 300],
        ["x" * 4000],
        ["x" * 3000, "y" * 3000, "z" * 100],
        [f"{number:03}" + "x" * 400 for number in range(20)],
    ):
        bench.answer(lambda _, texts=texts: {"allowed": True, "warnings": texts})
        found.append(bench.config_map()["warnings"])
    return found


def _review(response: Any, kind: str = "AdmissionReview", version: str = "admission.k8s.io/v1") -> dict[str, Any]:
    return {"kind": kind, "apiVersion": version, "response": response}


def _raw(body: Any, code: int = 200, content_type: str = "application/json") -> Raw:
    return Raw(
        body if isinstance(body, bytes) else json.dumps(body).encode(), code, headers={"Content-Type": content_type}
    )


STATUS = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "message": "mm",
    "reason": "Forbidden",
    "code": 403,
}
WRONG: dict[str, Callable[[dict[str, Any]], Any]] = {
    "uid": lambda _: _review({"uid": "x", "allowed": True}),
    "no uid": lambda _: _review({"allowed": True}),
    "kind": lambda r: _review({"uid": r["request"]["uid"], "allowed": True}, kind="Foo"),
    "version": lambda r: _review({"uid": r["request"]["uid"], "allowed": True}, version="admission.k8s.io/v1beta1"),
    "unknown version": lambda r: _review({"uid": r["request"]["uid"], "allowed": True}, version="admission.k8s.io/v7"),
    "no kind": lambda r: _raw({"response": {"uid": r["request"]["uid"], "allowed": True}}),
    "no response": lambda _: {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"},
    "nothing": lambda _: _raw(b""),
    "no JSON": lambda _: _raw(b"hello", content_type="text/plain"),
    "a list": lambda _: _raw([]),
    "any content type": lambda r: _raw(_review({"uid": r["request"]["uid"], "allowed": True}), content_type="text/html"),
    "created": lambda r: _raw(_review({"uid": r["request"]["uid"], "allowed": True}), 201),
    "no content": lambda _: _raw(b"", 204),
    "a Status": lambda _: _raw(STATUS, 500),
    "allowed is a string": lambda _: {"allowed": "yes"},
    "patch without type": lambda _: {"allowed": True, "patch": base64.b64encode(b"[]").decode()},
    "type without patch": lambda _: {"allowed": True, "patchType": "JSONPatch"},
    "empty patch": lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": ""},
    "no base64": lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": "[]!"},
    "half a patch": lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(b"{").decode()},
    "an object for a patch": lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(b"{}").decode()},
    "unknown patch type": lambda _: {
        "allowed": True,
        "patchType": "Merge",
        "patch": base64.b64encode(b'[{"op":"remove","path":"/data/a"}]').decode(),
    },
    "denied with a patch": lambda _: {**json_patch({"op": "add", "path": "/data/x", "value": "1"}), "allowed": False},
    "audit annotations": lambda _: {"allowed": True, "auditAnnotations": {"a": "b", "bad key!": "x"}},
    **{
        str(code): lambda _, code=code: _raw(b"text", code, "text/plain")
        for code in (400, 401, 403, 404, 405, 406, 409, 410, 415, 418, 422, 500, 502, 503, 504)
    },
}  # fmt: skip


@scenario
def answers_that_are_none(bench: Bench) -> Any:
    found = {}
    for plural in (MUTATING, VALIDATING):
        bench.register(plural, bench.webhook())
        for name, answer in WRONG.items():
            bench.answer(answer)
            found[plural, name] = bench.config_map()
        bench.unregister()
    return found


PATCHES: list[tuple[dict[str, Any], ...]] = [
    ({"op": "add", "path": "/data/x", "value": "y"},),
    ({"op": "add", "path": "/data/n", "value": None},),
    ({"op": "add", "path": "/data/nv"},),
    ({"op": "add", "path": "/metadata/labels/x", "value": "1"},),
    (
        {"op": "add", "path": "/metadata/labels", "value": {}},
        {"op": "add", "path": "/metadata/labels/a~1b", "value": "c"},
    ),
    ({"op": "add", "path": "data", "value": "1"},),
    ({"op": "add", "path": "/data/a/b", "value": "x"},),
    ({"op": "add", "value": None},),
    ({"op": "remove", "path": "/spec/x"},),
    ({"op": "remove", "path": "/data/x"},),
    ({"op": "remove", "path": "/kind"},),
    ({"op": "replace", "path": "/data/x", "value": "1"},),
    ({"op": "replace", "path": "/qq/cc", "value": 1},),
    ({"op": "replace", "path": "/data", "value": "x"},),
    ({"op": "replace", "path": "", "value": []},),
    ({"op": "replace", "path": "/apiVersion", "value": "v9"},),
    ({"op": "test", "path": "/data/a", "value": "b"},),
    ({"op": "test", "path": "/data/a", "value": "z"},),
    ({"op": "test", "path": "/data/zz", "value": None},),
    ({"op": "test", "path": "/data/q/r", "value": "z"},),
    ({"op": "move", "from": "/data/q", "path": "/data/r"},),
    ({"op": "move", "from": "/qq/a", "path": "/data/cc"},),
    ({"op": "move", "from": "/data/a", "path": "/qq/a"},),
    ({"op": "move", "from": "/data/a", "path": "/data/z"},),
    ({"op": "copy", "from": "/data/q", "path": "/data/r"},),
    ({"op": "copy", "from": "/data/a", "path": "/data/r"},),
    ({"op": "copy", "from": "/qq/a", "path": "/data/cc"},),
    ({"op": "copy", "from": "/data/a", "path": "/qq/cc"},),
    ({"op": "foo", "path": "/data/x"},),
    ({"path": "/data/x"},),
    ({"op": "add", "path": "/bogus", "value": "1"},),
    ({"op": "add", "path": "/data/x", "value": 1},),
    ({"op": "add", "path": "/data/b~1d", "value": "1"},),
    (
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/a"]},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/b"},
        {"op": "add", "path": "/metadata/finalizers/0", "value": "example.com/0"},
        {"op": "move", "from": "/metadata/finalizers/0", "path": "/metadata/finalizers/1"},
        {"op": "remove", "path": "/metadata/finalizers/-1"},
        {"op": "replace", "path": "/metadata/finalizers/1", "value": "example.com/r"},
    ),
    *(
        (
            {"op": "add", "path": "/metadata/finalizers", "value": []},
            {"op": op, "path": f"/metadata/finalizers/{at}", "value": "x"},
        )
        for op in ("add", "remove", "replace")
        for at in ("5", "z")
        if (op, at) not in {("add", "z"), ("remove", "z")}
    ),
    ({"op": "replace", "path": "/metadata/namespace", "value": "other"},),
    ({"op": "add", "path": "/metadata/uid", "value": "other"},),
    ({"op": "add", "path": "/metadata/resourceVersion", "value": "77"},),
    ({"op": "add", "path": "/metadata/managedFields", "value": [{"manager": "x"}]},),
]


@scenario
def patches_of_a_new_object(bench: Bench) -> Any:
    bench.register(MUTATING, bench.webhook())
    found = []
    for operations in PATCHES:
        bench.answer(lambda _, operations=operations: json_patch(*operations))
        found.append((operations, bench.config_map()))
    return found


@scenario
def patches_of_an_existing_object(bench: Bench) -> Any:
    bench.post(f"{bench.path}/configmaps", {"metadata": {"name": "u", "labels": {"q": "r"}}, "data": {"a": "b"}})
    bench.register(MUTATING, bench.webhook())
    found = []
    for number, (path, value) in enumerate(
        (
            ("/data/x", "y"),
            ("/metadata/name", "other"),
            ("/metadata/namespace", "other"),
            ("/metadata/uid", "other"),
            ("/metadata/resourceVersion", "3"),
            ("/metadata/resourceVersion", ""),
            ("/metadata/labels", {}),
            ("/metadata/finalizers", ["example.com/f"]),
            ("/metadata/managedFields", [{"manager": "x"}]),
        )
    ):
        bench.answer(lambda _, path=path, value=value: json_patch({"op": "add", "path": path, "value": value}))
        found.append((path, bench.patch(f"{bench.path}/configmaps/u", {"data": {"k": str(number)}})))
    found.append(("delete", bench.request("DELETE", f"{bench.path}/configmaps/u")))
    return found


@scenario
def what_a_webhook_adds_belongs_to_nobody(bench: Bench) -> Any:
    bench.register(MUTATING, bench.webhook())
    bench.answer(lambda _: json_patch({"op": "add", "path": "/data/x", "value": "y"}))
    bench.config_map("owned")
    found = bench.server.connection.request("GET", f"{bench.path}/configmaps/owned")
    return found["data"], [entry["fieldsV1"] for entry in found["metadata"]["managedFields"]]


# Several webhooks


def _marking(letter: str) -> Callable[[dict[str, Any]], Any]:
    def answer(review: dict[str, Any]) -> Any:
        seen = "".join(sorted(review["request"]["object"]["data"]))
        return json_patch({"op": "add", "path": f"/data/{letter}", "value": seen})

    return answer


@scenario
def mutating_webhooks_are_called_by_name_and_again_when_needed(bench: Bench) -> Any:
    for letter in "uvwx":
        bench.answer(_marking(letter), f"/{letter}")
    again = {"reinvocationPolicy": "IfNeeded"}
    bench.register(
        MUTATING,
        bench.webhook("/u", "z.example.com"),
        bench.webhook("/v", "a.example.com", **again),
        name="b",
    )
    bench.register(
        MUTATING,
        bench.webhook("/w", "q.example.com", **again),
        bench.webhook("/x", "r.example.com"),
        name="a",
    )
    created = bench.config_map("many")
    called = bench.paths()
    changed = bench.patch(f"{bench.path}/configmaps/many", {"data": {"n": "1"}})
    return created, called, changed, bench.paths()


@scenario
def a_webhook_is_not_called_again_for_nothing(bench: Bench) -> Any:
    again = {"reinvocationPolicy": "IfNeeded"}
    bench.register(
        MUTATING, bench.webhook("/u", "a.example.com", **again), bench.webhook("/v", "b.example.com", **again)
    )
    found = []
    for changing in ("/u", "/v"):
        bench.receiver.answers.clear()
        bench.answer(lambda _: json_patch({"op": "add", "path": "/data/x", "value": "1"}), changing)
        bench.config_map()
        found.append(bench.paths())
    return found


@scenario
def one_of_two_validating_webhooks_refuses(bench: Bench) -> Any:
    bench.register(VALIDATING, bench.webhook("/u", "a.example.com"), bench.webhook("/v", "b.example.com"))
    bench.answer(lambda _: {"allowed": True, "warnings": ["from a"]}, "/u")
    bench.answer(lambda _: {"allowed": False, "status": {"message": "b says no"}}, "/v")
    return bench.config_map(), sorted(bench.paths())


@scenario
def mutating_comes_before_validating_and_both_before_the_store(bench: Bench) -> Any:
    bench.config_map("twice")
    bench.register(MUTATING, bench.webhook("/m"))
    bench.register(VALIDATING, bench.webhook("/v"))
    bench.answer(lambda _: json_patch({"op": "add", "path": "/data/x", "value": "1"}), "/m")
    found = [bench.config_map("twice"), bench.paths()]
    bench.answer(lambda _: json_patch({"op": "add", "path": "/data/b~1d", "value": "1"}), "/m")
    return [*found, bench.config_map(), bench.paths()]


@scenario
def a_missing_namespace_comes_before_the_webhooks(bench: Bench) -> Any:
    # In all namespaces, so by a label: others' ConfigMaps are written meanwhile.
    labels = {"bench": bench.namespace}
    bench.register(VALIDATING, bench.webhook(namespaceSelector=None, objectSelector={"matchLabels": labels}))
    lost = {"metadata": {"name": "a", "labels": labels}}
    return bench.post(f"/api/v1/namespaces/no-{bench.namespace}/configmaps", lost), bench.paths()


# Webhooks that do not answer


@scenario
def failure_policies(bench: Bench) -> Any:
    nobody = {"url": "https://127.0.0.1:1/v", "caBundle": bench.receiver.ca_bundle}
    untrusted = {"url": bench.receiver.url("/hook")}
    nowhere = {
        "service": {"namespace": bench.namespace, "name": "svc", "path": "/x"},
        "caBundle": bench.receiver.ca_bundle,
    }
    bench.answer(lambda _: Raw(b"", delay=3), "/slow")
    bench.answer(lambda _: {"allowed": False}, "/deny")
    cases: dict[str, dict[str, Any]] = {
        "refused": {"clientConfig": nobody},
        "untrusted": {"clientConfig": untrusted},
        "no service": {"clientConfig": nowhere},
        "too slow": {"clientConfig": bench.receiver.client("/slow"), "timeoutSeconds": 1},
        "denied": {"clientConfig": bench.receiver.client("/deny")},
    }
    found = {}
    for name, fields in cases.items():
        label = name.replace(" ", "-")
        selector = {"matchLabels": {"case": label}}
        for policy in ("Fail", "Ignore"):
            bench.register(VALIDATING, bench.webhook(objectSelector=selector, failurePolicy=policy, **fields))
            found[name, policy] = bench.config_map(labels={"case": label})
            bench.unregister()
    return found


@scenario
def a_bad_patch_fails_whatever_the_policy(bench: Bench) -> Any:
    bench.register(MUTATING, bench.webhook(failurePolicy="Ignore"))
    found = []
    for answer in (
        lambda _: json_patch({"op": "remove", "path": "/x"}),
        lambda _: json_patch({"op": "replace", "path": "/data", "value": "x"}),
        lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(b"{").decode()},
        lambda _: {"allowed": True, "patchType": "JSONPatch"},
        lambda _: {"allowed": False},
    ):
        bench.answer(answer)
        found.append(bench.config_map())
    return found


# Match conditions

CONDITIONS: list[tuple[str, ...]] = [
    ("true",),
    ("false",),
    ('object.metadata.labels["x"] == "y"',),
    ('object.metadata.labels["x"] == "y"', "false"),
    ('object.metadata.labels["x"] == "y"', 'object.data.zz == "y"'),
    ('request.operation == "CREATE" && request.resource.resource == "configmaps" && oldObject == null',),
    ('request.kind.kind == "ConfigMap" && object.data.a.startsWith("b")',),
    ('"system:masters" in request.userInfo.groups',),
    ('!(request.userInfo.username in ["nobody"])', "has(object.data) && size(object.data) == 1"),
    ('namespaceObject.metadata.name == "x"',),
]


@scenario
def match_conditions(bench: Bench) -> Any:
    found = []
    for policy in ("Fail", "Ignore"):
        entries = []
        for number, expressions in enumerate(CONDITIONS):
            conditions = [{"name": f"c{at}", "expression": text} for at, text in enumerate(expressions)]
            selector = {"matchLabels": {"number": str(number)}}
            name = f"n{number}.example.com"
            entry = bench.webhook(f"/{number}", name, matchConditions=conditions, objectSelector=selector)
            entries.append({**entry, "failurePolicy": policy})
        bench.register(VALIDATING, *entries)
        for number, expressions in enumerate(CONDITIONS):
            answer = bench.config_map(labels={"number": str(number)})
            found.append((policy, expressions, answer["code"], answer["body"].get("message"), bench.paths()))
        bench.unregister()
    return found


# Configurations


def _configurations(bench: Bench) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    def one(**fields: Any) -> list[dict[str, Any]]:
        base = {
            "name": "v.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/v"},
            "rules": bench.rule("configmaps", groups=("nowhere.example.com",)),
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        return [{key: value for key, value in {**base, **fields}.items() if value is not None}]

    def service(**fields: Any) -> list[dict[str, Any]]:
        return one(clientConfig={"service": {"namespace": "a", "name": "b", **fields}})

    yield "plain", one()
    yield "none", []
    yield "no rules", one(rules=None)
    yield "twice", [*one(), *one()]
    for name in ("", "a", "a.b", "A.b.c", "a_.b.c"):
        yield f"name {name}", one(name=name)
    for effects in (None, "Some", "Unknown", "x"):
        yield f"effects {effects}", one(sideEffects=effects)
    for seconds in (0, 1, 30, 31, -1):
        yield f"timeout {seconds}", one(timeoutSeconds=seconds)
    for versions in ([], ["v1beta1"], ["v9"], ["v9", "v1"], ["v1", "v1"], ["V!", "v1"]):
        yield f"versions {versions}", one(admissionReviewVersions=versions)
    yield "policies", one(failurePolicy="x", matchPolicy="x")
    yield "both addresses", one(clientConfig={"url": "https://a/b", "service": {"namespace": "a", "name": "b"}})
    yield "no address", one(clientConfig={})
    for url in (
        "http://a/b",
        "https://a/b?x=y",
        "https://a/b#f",
        "https://u:p@a/b",
        "https:///b",
        "::",
        "a",
        "",
        "https://",
        "https://[",
        "https://[::1]x",
        "https://[x]/",
        "https://a b/",
        "https://a%zz/",
        "https://a/%zz",
        "https://x:port/",
        "ht!tp://x",
        "\x7fhttps://a",
        "https://a:99999/",
    ):
        yield f"url {url}", one(clientConfig={"url": url})
    yield "service", service()
    yield "service without name", service(name="")
    yield "service without namespace", service(namespace="")
    for port in (0, 70000):
        yield f"port {port}", service(port=port)
    for path in ("q", "/q", "//", "/", "/a//b", "/a b", "/a/", "/a?b", "/.."):
        yield f"path {path}", service(path=path)
    yield "no base64", one(clientConfig={"url": "https://a/b", "caBundle": "!!"})
    yield "no certificate", one(clientConfig={"url": "https://a/b", "caBundle": "aGVsbG8="})
    for field, values in {
        "apiGroups": ([], ["*", "a"]),
        "apiVersions": ([], ["*", "v1"], [""]),
        "operations": ([], ["*", "CREATE"], ["GET"]),
        "scope": ("x", "Cluster"),
    }.items():
        for value in values:
            yield f"{field} {value}", one(rules=bench.rule("configmaps", **{field: value}))
    for resources in (
        [], [""], ["*", "pods"], ["*/*", "pods"], ["pods/*", "pods/status"], ["*/status", "pods/status"], ["*", "pods/status"],
    ):  # fmt: skip
        yield f"resources {resources}", one(rules=bench.rule(*resources))
    yield "empty rule", one(rules=[{}])
    for selector in (
        {"matchExpressions": [{"key": "a", "operator": "Foo"}]},
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
        {"matchLabels": {"a b": "c"}},
        {"matchLabels": {"a": "b c"}},
    ):
        yield f"selector {selector}", one(objectSelector=selector)
    for conditions in (
        [{"name": "a", "expression": "true"}],
        [{"expression": "true"}],
        [{"name": "a"}],
        [{"name": "a", "expression": "  "}],
        [{"name": "a b", "expression": "true"}],
        [{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}],
        [{"name": "a", "expression": "1"}],
        [{"name": "a", "expression": "("}],
        [{"name": "a", "expression": "foo == 1"}],
        [{"name": "a", "expression": "request.bogus == 1"}],
        [{"name": f"a{number}", "expression": "true"} for number in range(65)],
    ):
        yield f"conditions {conditions}", one(matchConditions=conditions)
    yield "unknown field", one(bogus=1)


@scenario
def configurations_are_defaulted_and_checked(bench: Bench) -> Any:
    found = {}
    for name, entries in _configurations(bench):
        for plural in (MUTATING, VALIDATING):
            body = {"metadata": {"name": f"x-{bench.namespace}"}, "webhooks": entries}
            found[plural, name] = bench.post(f"{ADMISSION}/{plural}?dryRun=All", body)
    return found


@pytest.fixture(params=list(SCENARIOS))
def run(request: pytest.FixtureRequest, receiver: WebhookReceiver) -> Iterator[Callable[[Environment], Any]]:
    benches: list[Bench] = []

    def on(server: Environment) -> Any:
        bench = Bench(server, receiver)
        benches.append(bench)
        try:
            return SCENARIOS[request.param](bench)
        finally:
            bench.close()

    yield on
    receiver.answers.clear()
    receiver.received.clear()


def test_both_servers_do_alike(run, embedded_server, real_server):
    expected = run(real_server)

    assert run(embedded_server) == expected
