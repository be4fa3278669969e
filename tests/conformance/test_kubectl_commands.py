"""kubectl on the embedded server does what it does on the real one: the same exit codes, and the same words.

Each test gives both servers the same commands in a namespace of the same name. What differs by nature (ages, uids, times, versions) is
replaced by its name before the outputs are compared.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from ctrlruntime.testing import Environment

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl in the PATH")

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "trinkets.kubectl.example.com"},
    "spec": {
        "group": "kubectl.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Trinket", "plural": "trinkets", "shortNames": ["trk"], "categories": ["gear"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "A thing of some size.",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "description": "What is wanted.",
                                "required": ["size"],
                                "properties": {
                                    "size": {"type": "integer", "minimum": 0, "description": "How big it is."}
                                },
                            },
                            "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}
TRINKET = {"apiVersion": "kubectl.example.com/v1", "kind": "Trinket", "metadata": {"name": "w"}, "spec": {"size": 1}}
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"color": "red"}}
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]}]},
        },
    },
}
# Of another scheduler: it stays Pending on both.
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "idle"},
    "spec": {"schedulerName": "mine", "containers": [{"name": "idle", "image": "idle:1"}]},
}

_NATURE = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    # After the uids: a group of one may read like an age (937d).
    (r"\b\d+(\.\d+)?(ms|s|m|h|d)(\d+(s|m|h))?\b", "AGE"),
    (r"\"?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\"?", "TIME"),
    (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} [\d:]+ [+-]\d{4}", "TIME"),
    (r"resourceVersion: \"\d+\"", "resourceVersion: VERSION"),
    (r"Resource Version: +\d+", "Resource Version: VERSION"),
    (r"<invalid>|<unknown>", "AGE"),
    (r"\b(web|w|idle)-[a-z0-9]{7,10}\b", r"\1-HASH"),
    (r"pod-template-hash[:=] ?\S+", "pod-template-hash=HASH"),
    (r"[ \t]+", " "),
)


class Answer(NamedTuple):
    code: int
    out: str
    err: str


class Kubectl:
    """kubectl against one server, in one namespace."""

    def __init__(self, server: Environment, namespace: str, folder: str) -> None:
        self._base = [
            "kubectl", "--kubeconfig", str(server.kubeconfig_path), "--cache-dir", folder, "--namespace", namespace
        ]  # fmt: skip
        self.url = server.url

    def __call__(self, *arguments: str, stdin: Any = None) -> Answer:
        """Run a command; `stdin` is a manifest, or a tuple of some."""
        documents = stdin if isinstance(stdin, tuple) else (stdin,)
        done = self._run(arguments, None if stdin is None else "\n".join(map(json.dumps, documents)))
        return Answer(done.returncode, self._plain(done.stdout), self._plain(done.stderr))

    def text(self, *arguments: str) -> str:
        """Run a command and return what it printed, as it is."""
        return self._run(arguments).stdout

    def _run(self, arguments: Sequence[str], stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._base, *arguments], input=stdin, capture_output=True, text=True, timeout=120, check=False
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self._base, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        )

    def _plain(self, text: str) -> str:
        text = text.replace(self.url, "URL")
        for pattern, name in _NATURE:
            text = re.sub(pattern, name, text)
        return "\n".join(line.rstrip() for line in text.splitlines())


class Both:
    """The two servers side by side."""

    def __init__(self, embedded: Kubectl, real: Kubectl) -> None:
        self.embedded = embedded
        self.real = real

    def __call__(self, *arguments: str, stdin: Any = None) -> Answer:
        """Give both the command; they must answer the same."""
        answer = self.embedded(*arguments, stdin=stdin)
        assert answer == self.real(*arguments, stdin=stdin), f"kubectl {' '.join(arguments)}"
        return answer

    def create(self, *manifests: dict[str, Any]) -> None:
        """Give both servers what a test looks at, by one command."""
        assert self("create", "-f", "-", stdin=manifests).code == 0

    def codes(self, *arguments: str, stdin: Any = None) -> tuple[Answer, Answer]:
        """Give both the command; they must end with the same code."""
        answers = self.embedded(*arguments, stdin=stdin), self.real(*arguments, stdin=stdin)
        assert answers[0].code == answers[1].code, answers
        return answers


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[str]:
    """Where kubectl keeps what it has learned of the two servers."""
    return [str(tmp_path_factory.mktemp(name)) for name in ("embedded", "real")]


@pytest.fixture
def both(embedded_server: Environment, real_server: Environment, folders: list[str]) -> Both:
    namespace = f"kubectl-{secrets.token_hex(4)}"
    servers = (embedded_server, real_server)
    for server in servers:
        server.connection.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    return Both(*(Kubectl(server, namespace, folder) for server, folder in zip(servers, folders, strict=True)))


@pytest.fixture
def trinkets(embedded_server: Environment, real_server: Environment) -> None:
    for server in (embedded_server, real_server):
        serve_trinkets(server)


def serve_trinkets(server: Environment) -> None:
    """Have Trinkets served and described: the real server's OpenAPI documents, which kubectl reads, follow seconds later."""
    server.install_crds(CRD)
    deadline = time.monotonic() + 60
    for path, part, name in (
        ("/openapi/v3", "paths", "apis/kubectl.example.com/v1"),
        ("/openapi/v2", "definitions", "com.example.kubectl.v1.Trinket"),
    ):
        while name not in server.connection.request("GET", path)[part]:
            assert time.monotonic() < deadline, f"{server.backend}: {path} has no Trinkets within a minute"
            time.sleep(0.1)


def test_apply_creates_changes_and_leaves_alone(both):
    assert both("apply", "-f", "-", stdin=SETTINGS).out == "configmap/settings created"
    assert both("apply", "-f", "-", stdin=SETTINGS).out == "configmap/settings unchanged"
    changed = {**SETTINGS, "data": {"size": "big"}}
    assert both("apply", "-f", "-", stdin=changed).out == "configmap/settings configured"
    # What was applied before and is no longer there is removed; that is the annotation's work.
    assert json.loads(both("get", "configmap", "settings", "-o", "jsonpath={.data}").out) == {"size": "big"}


def test_apply_of_what_is_refused(both):
    bad = {**WEB, "spec": {**WEB["spec"], "selector": {"matchLabels": {"app": "other"}}}}

    answer = both("apply", "-f", "-", stdin=bad)

    assert answer.code == 1
    assert "`selector` does not match template `labels`" in answer.err


def listed(*items: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def test_apply_and_create_of_a_list(both):
    assert both("apply", "-f", "-", stdin=listed(SETTINGS, POD)).out == "configmap/settings created\npod/idle created"
    assert both("create", "-f", "-", stdin=listed(SETTINGS)).code == 1


def test_what_was_read_is_applied(both):
    # Not of all ConfigMaps: that of the namespace is there a moment later, in kubectl's own List too.
    both.create(*({**SETTINGS, "metadata": {"name": name, "labels": {"mine": ""}}} for name in ("one", "two")))

    for kubectl in (both.embedded, both.real):
        read = json.loads(kubectl.text("get", "configmaps", "-l", "mine", "-o", "json"))
        assert kubectl("apply", "-f", "-", stdin=read).out == "configmap/one configured\nconfigmap/two configured"


def test_a_kind_that_does_not_exist(both):
    misspelled = {**SETTINGS, "kind": "ConfigMop"}

    assert 'no matches for kind "ConfigMop" in version "v1"' in both("apply", "-f", "-", stdin=misspelled).err
    assert both("apply", "-f", "-", stdin=listed(misspelled)).code == 1
    assert both("create", "-f", "-", stdin={**misspelled, "apiVersion": "kubectl.example.com/v9"}).code == 1


def test_the_items_of_a_list_are_validated_by_kubectl(both):
    unknown = listed({**SETTINGS, "colour": "red"})
    wrong = listed({**WEB, "spec": {**WEB["spec"], "replicas": "many", "selector": None}})

    assert (
        'unknown field "colour" in io.k8s.api.core.v1.ConfigMap'
        in both("apply", "--validate=strict", "-f", "-", stdin=unknown).err
    )
    assert 'got "string", expected "integer"' in both("apply", "--validate=strict", "-f", "-", stdin=wrong).err
    for answer in both.codes("apply", "--validate=warn", "-f", "-", stdin=unknown):
        assert answer.code == 0
        assert 'Warning: unknown field "colour"' in answer.err
    assert both("apply", "--validate=ignore", "-f", "-", stdin=unknown).err == ""


def test_custom_resources_in_a_list(both, trinkets):
    assert both("apply", "-f", "-", stdin=listed(TRINKET)).code == 0
    assert both("apply", "-f", "-", stdin=listed({**TRINKET, "spec": {"size": 1, "sise": 2}})).err.startswith(
        'error: error validating "STDIN": error validating data: ValidationError(Trinket.spec): unknown field "sise"'
    )


def test_explain_in_its_old_form(both):
    for answer in both.codes("explain", "--output=plaintext-openapiv2", "deployment.spec.strategy"):
        assert "RESOURCE: strategy <Object>" in answer.out
        assert " type <string>" in answer.out


def test_apply_of_a_field_that_does_not_exist(both):
    bad = {**WEB, "spec": {**WEB["spec"], "replica": 1}}

    answer = both("apply", "-f", "-", stdin=bad)

    assert answer.code == 1
    assert 'unknown field "spec.replica"' in answer.err


def test_get(both):
    both.create(SETTINGS, WEB, POD)

    for output in ([], ["-o", "wide"], ["-o", "name"], ["-o", "yaml"]):
        # The status of a Deployment is written a moment later, by a controller.
        deployment = [] if "yaml" in output else ["deployment/web"]
        assert both("get", "configmap/settings", "pod/idle", *deployment, *output).code == 0


def test_get_of_what_is_not_there(both):
    assert both("get", "pods").err.startswith("No resources found in kubectl-")
    assert both("get", "pod", "nobody").err == 'Error from server (NotFound): pods "nobody" not found'
    assert both("get", "gizmos").err == 'error: the server doesn\'t have a resource type "gizmos"'
    assert both("get", "pods", "--ignore-not-found", "nobody") == (0, "", "")


def test_get_by_labels_fields_and_paths(both):
    colors = {"one": "red", "two": "blue"}
    both.create(*({**SETTINGS, "metadata": {"name": name, "labels": {"color": colors[name]}}} for name in colors))

    assert both("get", "configmaps", "-l", "color=red", "-o", "name").out == "configmap/one"
    assert both("get", "configmaps", "-l", "color notin (red)", "-L", "color").code == 0
    assert both("get", "configmaps", "--field-selector", "metadata.name=two", "-o", "name").out == "configmap/two"
    assert both("get", "pods", "--field-selector", "spec.nonsense=1").code == 1
    assert both("get", "configmap", "one", "-o", "jsonpath={.metadata.labels.color}").out == "red"


def test_custom_resources_have_their_columns_names_and_categories(both, trinkets):
    both("apply", "-f", "-", stdin=TRINKET)

    assert both("get", "trinkets").out.splitlines()[0] == "NAME SIZE AGE"
    assert both("get", "trk", "w", "-o", "name").out == "trinket.kubectl.example.com/w"
    assert both("get", "gear", "-o", "name").out == "trinket.kubectl.example.com/w"
    for answer in both.codes("apply", "-f", "-", stdin={**TRINKET, "spec": {"size": -1}}):
        assert "spec.size in body should be greater than or equal to 0" in answer.err
    assert both("apply", "-f", "-", stdin={**TRINKET, "spec": {}}).code == 1


def test_describe(both, trinkets):
    both.create(SETTINGS, POD, TRINKET)

    assert both("describe", "configmap/settings", "pod/idle", "trinket/w").code == 0


def test_describe_of_a_deployment_names_what_matters(both):
    both.create(WEB)

    for answer in both.codes("describe", "deployment", "web"):
        assert re.search(r"Selector: app=web", answer.out)
        assert re.search(r"Replicas: 0 desired", answer.out)
        assert "Image: web:1" in answer.out


def test_scale(both, trinkets):
    both.create(WEB, TRINKET)

    assert both("scale", "deployment", "web", "--replicas", "1").out == "deployment.apps/web scaled"
    assert both("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}").out == "1"
    assert both("scale", "trinket", "w", "--replicas", "7").out == "trinket.kubectl.example.com/w scaled"
    assert both("get", "trinket", "w", "-o", "jsonpath={.spec.size}").out == "7"
    assert both("scale", "trinket", "w", "--replicas", "8", "--current-replicas", "1").code == 1
    assert both("scale", "configmap", "settings", "--replicas", "1").code == 1


def test_patch(both):
    both.create(SETTINGS)
    patches = {
        "merge": ("blue", '{"data": {"color": "blue"}}'),
        "json": ("green", '[{"op": "replace", "path": "/data/color", "value": "green"}]'),
        "strategic": ("white", '{"data": {"color": "white"}}'),
    }
    for sort, (color, patch) in patches.items():
        command = ["patch", "configmap", "settings", "--type", sort, "-p", patch]
        assert both(*command).out == "configmap/settings patched"
        assert both(*command).out.endswith("patched (no change)")
        assert both("get", "configmap", "settings", "-o", "jsonpath={.data.color}").out == color


def test_patches_that_are_refused(both, trinkets):
    both.create(SETTINGS, TRINKET)

    wrong = '[{"op": "test", "path": "/data/color", "value": "blue"}]'
    assert both.codes("patch", "configmap", "settings", "--type", "json", "-p", wrong)[0].code == 1
    assert both("patch", "trinket", "w", "-p", '{"spec": {"size": 2}}').code == 1
    for answer in both.codes("patch", "trinket", "w", "--type", "merge", "-p", '{"spec": {"size": "big"}}'):
        assert 'spec.size in body must be of type integer: "string"' in answer.err


def test_delete(both):
    both.create(SETTINGS, POD)

    assert both("delete", "configmap", "settings").out.startswith('configmap "settings" deleted')
    assert both("delete", "configmap", "settings").code == 1
    assert both("delete", "configmap", "settings", "--ignore-not-found").code == 0
    assert both("delete", "pod", "idle", "--now").code == 0
    assert both("get", "pod", "idle").code == 1


def test_create_of_what_exists(both):
    both("create", "-f", "-", stdin=SETTINGS)

    answer = both("create", "-f", "-", stdin=SETTINGS)

    assert answer.code == 1
    assert answer.err.startswith("Error from server (AlreadyExists): error when creating")


def test_labels_and_annotations(both):
    both.create(SETTINGS)

    assert both("label", "configmap", "settings", "color=red").out == "configmap/settings labeled"
    assert both("label", "configmap", "settings", "color=blue").code == 1
    assert both("annotate", "configmap", "settings", "note=any").out == "configmap/settings annotated"


def test_get_watch_shows_changes_as_they_come(both):
    both.create(SETTINGS)
    for kubectl in (both.embedded, both.real):
        watch = kubectl.start("get", "configmap", "settings", "-w", "-o", "jsonpath={.data.color} ")
        try:
            assert watch.stdout is not None
            assert watch.stdout.read(4) == "red "
            kubectl("patch", "configmap", "settings", "-p", '{"data": {"color": "blue"}}')
            assert watch.stdout.read(5) == "blue "
        finally:
            watch.kill()
            watch.communicate()


@pytest.mark.parametrize("path", ["trinkets.spec", "trinkets.spec.size"])
def test_explain_of_a_custom_resource(both, trinkets, path):
    assert both("explain", path).code == 0


@pytest.mark.parametrize("path", ["trinkets", "deployments.spec.replicas", "pods.spec"])
def test_explain_names_fields_and_types(both, trinkets, path):
    # The embedded server has the fields of built-in kinds and not their prose.
    fields = [
        re.findall(r"^(?:FIELD:)? (\w+) <(.+?)>", answer.out, re.MULTILINE) for answer in both.codes("explain", path)
    ]

    assert fields[0] == fields[1] != []


def test_explain_of_what_is_not_there(both):
    assert both("explain", "deployments.spec.nonsense").code == 1


def test_api_resources_of_a_group(both, trinkets):
    for group in ("apps", "kubectl.example.com", "rbac.authorization.k8s.io"):
        assert both("api-resources", "--api-group", group, "--sort-by", "name").code == 0


@pytest.mark.parametrize(
    "question",
    [
        ["create", "pods"],
        ["create", "pods", "--as", "nobody"],
        ["get", "configmaps", "--as", "nobody", "--as-group", "system:masters"],
        ["get", "/version", "--as", "nobody", "--as-group", "system:authenticated"],
    ],
)
def test_auth_can_i(both, question):
    assert both("auth", "can-i", *question).out in {"yes", "no"}


def test_logs_of_a_running_pod_are_what_its_annotation_says(embedded_server, tmp_path):
    namespace = embedded_server.create_namespace()
    kubectl = Kubectl(embedded_server, namespace, str(tmp_path))
    running = {**POD, "spec": {"containers": POD["spec"]["containers"], "terminationGracePeriodSeconds": 0}}
    annotations = {**POD["metadata"].get("annotations", {}), "simulation.ctrlruntime.dev/log": "one\ntwo"}
    running["metadata"] = {**POD["metadata"], "annotations": annotations}
    kubectl("apply", "-f", "-", stdin=running)
    assert kubectl("wait", "pod/idle", "--for=condition=Ready", "--timeout=20s").code == 0

    assert kubectl("logs", "idle").out.splitlines() == ["one", "two"]
    assert kubectl("logs", "idle", "--tail=1").out.strip() == "two"
    embedded_server.delete_namespace(namespace)


def test_version_and_cluster_info_are_there(both):
    for answer in both.codes("version"):
        assert "Server Version: v1.36.1" in answer.out
