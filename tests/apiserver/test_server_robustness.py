"""What no client should send: every answer is a Status or a closed connection, the server logs no traceback and goes on.

The bodies are made by Hypothesis; `scripts/test --all` tries more of them, and others each time.
"""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from servers import LONGEST_WAIT

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
TYPES = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"]
PATCHES = ["json-patch", "merge-patch", "strategic-merge-patch"]


@pytest.fixture(autouse=True)
def _no_traceback(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """No request of these tests may end in a fault of the server's own; it would write a traceback."""
    yield
    assert "Traceback" not in capfd.readouterr().err


def well_formed(answer: Any) -> bool:
    """An object, a Status that says what is wrong, and never the server's own fault."""
    if answer.code < 300:
        return True
    body = answer.body
    assert body["kind"] == "Status"
    assert body["message"]
    assert not body["message"].startswith("Internal error occurred"), body["message"]
    return answer.code < 500 or body["message"].startswith(("etcdserver:", "resourceVersion", "strconv", "unable to"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4),
    max_leaves=20,
)
FIELDS = ["metadata", "name", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "data", "spec", "status",
          "containers", "template", "selector", "matchLabels", "replicas", "ports", "generateName", "uid", "image",
          "managedFields", "resourceVersion", "generation", "creationTimestamp", "kind", "apiVersion", "strategy", "env", "key",
          "rules", "versions", "names", "plural", "group", "schema", "openAPIV3Schema", "properties", "type", "items"]  # fmt: skip
object_like = st.recursive(
    json_values,
    lambda children: st.dictionaries(st.sampled_from(FIELDS), children, max_size=6) | st.lists(children, max_size=3),
    max_leaves=25,
)


@given(body=st.binary(max_size=300), content_type=st.sampled_from(TYPES))
def test_bytes_of_any_kind_are_answered(api, body, content_type):
    assert well_formed(api.request("POST", CONFIG_MAPS, body, headers={"Content-Type": content_type}))


@given(body=st.binary(max_size=300))
def test_bytes_after_the_protobuf_magic_are_answered(api, body):
    headers = {"Content-Type": "application/vnd.kubernetes.protobuf"}
    assert well_formed(api.request("POST", CONFIG_MAPS, b"k8s\0" + body, headers=headers))


PATHS = {
    "Deployment": ("apps/v1", "/apis/apps/v1/namespaces/default/deployments"),
    "Pod": ("v1", "/api/v1/namespaces/default/pods"),
    "Service": ("v1", "/api/v1/namespaces/default/services"),
    "Job": ("batch/v1", "/apis/batch/v1/namespaces/default/jobs"),
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
    "Role": ("rbac.authorization.k8s.io/v1", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"),
    "Event": ("v1", "/api/v1/namespaces/default/events"),
    "Lease": ("coordination.k8s.io/v1", "/apis/coordination.k8s.io/v1/namespaces/default/leases"),
    "ValidatingWebhookConfiguration": (
        "admissionregistration.k8s.io/v1",
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    ),
}


@given(kind=st.sampled_from(sorted(PATHS)), metadata=object_like, spec=object_like, rest=object_like)
def test_objects_of_any_shape_are_answered(api, kind, metadata, spec, rest):
    version, path = PATHS[kind]
    named = metadata if isinstance(metadata, dict) else {"name": "fuzz", "labels": metadata}
    document = {"apiVersion": version, "kind": kind, "metadata": named, "spec": spec, "rules": rest, "webhooks": rest}
    assert well_formed(api.post(path, document, dryRun="All"))


@given(spec=st.fixed_dictionaries({}, optional={
    "replicas": object_like,
    "selector": st.fixed_dictionaries({}, optional={"matchLabels": object_like, "matchExpressions": object_like}),
    "strategy": object_like,
    "template": st.fixed_dictionaries({}, optional={
        "metadata": object_like,
        "spec": st.fixed_dictionaries({}, optional={
            "containers": st.lists(st.dictionaries(st.sampled_from(["name", "image", "ports", "env", "resources", "command"]),
                                                   object_like, max_size=4), max_size=2),
            "volumes": object_like, "tolerations": object_like}),
    }),
}))  # fmt: skip
def test_workloads_with_wrong_parts_are_answered(api, spec):
    document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "fuzz"}, "spec": spec}
    assert well_formed(api.post(PATHS["Deployment"][1], document, dryRun="All"))


@given(schema=object_like, columns=object_like)
def test_definitions_with_any_schema_are_answered(api, make, schema, columns):
    body = make.definition("fuzzes", "Fuzz")
    version = body["spec"]["versions"][0]
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}}
    version["additionalPrinterColumns"] = columns
    assert well_formed(api.post(make.definitions, body, dryRun="All"))


@given(patch=object_like, kind=st.sampled_from(PATCHES))
def test_patches_of_any_shape_are_answered(api, patched_target, patch, kind):
    assert well_formed(api.patch(patched_target, patch, kind, dryRun="All"))


@given(
    operations=st.lists(
        st.fixed_dictionaries(
            {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "spin"])},
            optional={
                "path": st.text("/~01-abdtmeals", max_size=12),
                "from": st.text("/~01-abdtmeals", max_size=12),
                "value": json_values,
            },
        ),
        max_size=4,
    )
)
def test_json_patches_of_any_operations_are_answered(api, patched_target, operations):
    assert well_formed(api.patch(patched_target, operations, "json-patch", dryRun="All"))


@pytest.fixture(scope="module")
def patched_target(thread, make) -> str:
    client = make.client(thread)
    name = f"{PATHS['Deployment'][1]}/patched"
    client.made(PATHS["Deployment"][1], make.deployment("patched"))
    client.close()
    return name


OPTIONS = ["labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch", "limit", "continue", "pretty",
           "timeoutSeconds", "dryRun", "fieldValidation", "fieldManager", "force", "propagationPolicy", "gracePeriodSeconds",
           "includeObject", "timeout"]  # fmt: skip


@given(
    query=st.dictionaries(st.sampled_from(OPTIONS), st.text(max_size=12), max_size=4),
    method=st.sampled_from(["GET", "POST"]),
)
def test_query_options_of_any_value_are_answered(api, query, method):
    query.pop("resourceVersion", None) if query.get(
        "resourceVersion", ""
    ).isdigit() else None  # would wait for the future
    body = {"metadata": {"generateName": "q-"}} if method == "POST" else None
    assert well_formed(api.request(method, CONFIG_MAPS, body, headers={"Content-Type": "application/json"}, **query))


@given(accept=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60))
def test_accept_headers_of_any_text_are_answered(api, accept):
    assert well_formed(api.get(CONFIG_MAPS, headers={"Accept": accept}))


@given(token=st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=80))
def test_tokens_of_any_text_are_refused(api, token):
    answer = api.get(CONFIG_MAPS, headers={"Authorization": f"Bearer {token}"})
    assert answer.code in {401, 403}


def test_a_deeply_nested_body_is_refused(api):
    for opening, closing in ((b'{"a":', b"}"), (b"[", b"]")):
        deep = opening * 100_000 + b"1" + closing * 100_000
        body = b'{"metadata":{"name":"deep"},"data":' + deep + b"}"
        answer = api.request("POST", CONFIG_MAPS, body, headers={"Content-Type": "application/json"})
        assert (answer.code, answer.reason) == (400, "BadRequest")


def test_a_deeply_nested_yaml_body_is_refused(api):
    body = b"data: " + b"[" * 20_000 + b"]" * 20_000
    answer = api.request("POST", CONFIG_MAPS, body, headers={"Content-Type": "application/yaml"})
    assert (answer.code, answer.reason) == (400, "BadRequest")


def test_a_deeply_nested_protobuf_body_is_refused(api):
    inner = b""
    for _ in range(3000):
        inner = b"\x0a" + _varint(len(inner)) + inner
    headers = {"Content-Type": "application/vnd.kubernetes.protobuf"}
    assert well_formed(api.request("POST", CONFIG_MAPS, b"k8s\0" + inner, headers=headers))


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def test_yaml_that_grows_without_bound_is_refused(api):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    body = "\n".join([*lines, "metadata: {name: bomb}"]).encode()
    before = psutil.Process().memory_info().rss
    answer = api.request("POST", CONFIG_MAPS, body, headers={"Content-Type": "application/yaml"})
    assert (answer.code, answer.reason) == (400, "BadRequest")
    assert psutil.Process().memory_info().rss - before < 50_000_000


def test_yaml_that_contains_itself_is_refused(api):
    body = b"metadata: {name: loop}\ndata: &a {b: *a}\n"
    answer = api.request("POST", CONFIG_MAPS, body, headers={"Content-Type": "application/yaml"})
    assert (answer.code, answer.reason) == (400, "BadRequest")


def test_yaml_aliases_are_read(api, ns):
    body = yaml.safe_dump({"metadata": {"name": "aliased"}}) + "data: {a: &v one, b: *v}\n"
    answer = api.request(
        "POST", f"/api/v1/{ns}/configmaps", body.encode(), headers={"Content-Type": "application/yaml"}
    )
    assert answer.body["data"] == {"a": "one", "b": "one"}


def test_ten_thousand_operations_are_applied_and_one_more_is_refused(api, ns, make):
    api.made(f"/api/v1/{ns}/configmaps", make.config_map("many", a="0"))
    operations = [{"op": "replace", "path": "/data/a", "value": str(i)} for i in range(10_000)]
    assert api.patch(f"/api/v1/{ns}/configmaps/many", operations, "json-patch").body["data"] == {"a": "9999"}
    answer = api.patch(f"/api/v1/{ns}/configmaps/many", [*operations, operations[0]], "json-patch")
    assert answer.code == 413


def test_a_copy_bomb_is_refused(api, ns, make):
    api.made(f"/api/v1/{ns}/configmaps", make.config_map("bomb", a="x" * 1000))
    operations = [{"op": "copy", "from": "/data", "path": f"/data/k{i}"} for i in range(60)]
    answer = api.patch(f"/api/v1/{ns}/configmaps/bomb", operations, "json-patch")
    assert well_formed(answer)
    assert answer.code in {400, 413, 422}


def test_a_huge_body_is_refused(api):
    body = json.dumps({"metadata": {"name": "huge"}, "data": {"a": "x" * 3_200_000}}).encode()
    answer = api.request("POST", CONFIG_MAPS, body, headers={"Content-Type": "application/json"})
    assert (answer.code, answer.reason) == (413, "RequestEntityTooLarge")


@pytest.mark.parametrize(("length", "is_read"), [(1_000, True), (1_500_000, False)])
def test_a_selector_of_megabytes_in_a_review_is_not_parsed(api, monkeypatch, length, is_read):
    from ctrlruntime.apiserver.http import reviews

    parsed = []
    monkeypatch.setattr(reviews, "parse_labels", parsed.append)
    asked = {"verb": "list", "resource": "pods", "labelSelector": {"rawSelector": "a," * length + "a"}}

    answer = api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": asked}})

    assert answer.code == 201
    assert any(len(text) > length for text in parsed) == is_read


class Raw:
    """A TLS connection that sends what it is told."""

    def __init__(self, api) -> None:
        context = ssl.create_default_context(cadata=api.server.ca_pem.decode())
        plain = socket.create_connection(("127.0.0.1", api.server.port), timeout=120)
        self.socket = context.wrap_socket(plain, server_hostname="127.0.0.1")

    def exchange(self, text: bytes) -> bytes:
        """Send, and return the first part of the answer; nothing when the server closed the connection."""
        try:
            self.socket.sendall(text)
            return self.socket.recv(65536)
        except (ConnectionError, ssl.SSLError):
            return b""

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def raw(api) -> Iterator[Raw]:
    connection = Raw(api)
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "text",
    [
        b"GET /api HTTP/9.9\r\n\r\n",
        b"NONSENSE\r\n\r\n",
        b"GET " + b"/a" * 60_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /api HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 200_000 + b"\r\n\r\n",
        b"GET /api HTTP/1.1\r\n" + b"".join(b"H%d: v\r\n" % i for i in range(20_000)) + b"\r\n",
        b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n",
        b"POST /api HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /%zz/%00%ff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /api/v1/namespaces/%2e%2e/configmaps HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=["version", "no-request", "long-path", "long-header", "many-headers", "negative-length", "length", "chunk", "escape",
         "dots", "not-text"],
)  # fmt: skip
def test_requests_that_are_no_http_are_refused_or_cut(api, raw, text):
    answer = raw.exchange(text)
    assert not answer or answer.split()[1][:1] == b"4"
    assert api.get("/version").code == 200


def test_a_body_that_never_comes_holds_nobody_up(api, raw):
    raw.socket.sendall(
        b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"
    )
    assert api.get(CONFIG_MAPS).code == 200


@pytest.fixture
def many_files() -> Iterator[None]:
    """Both ends of 1,000 connections are open in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip(f"needs 4,096 open files, and may have {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
async def test_a_thousand_idle_watches_cost_little_and_all_are_told(api, ns, make):
    context = ssl.create_default_context(cadata=api.server.ca_pem.decode())
    request = f"GET /api/v1/{ns}/configmaps?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.server.admin_token}\r\n\r\n"
    before = psutil.Process().memory_info().rss
    streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    limit = asyncio.Semaphore(20)

    async def watch() -> None:
        async with limit:
            reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port, ssl=context)
            writer.write(request.encode())
            assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
            streams.append((reader, writer))

    async with asyncio.timeout(LONGEST_WAIT):
        await asyncio.gather(*(watch() for _ in range(1000)))
        assert psutil.Process().memory_info().rss - before < 900_000_000  # asyncio keeps 256 KiB for TLS, at both ends
        await asyncio.to_thread(api.made, f"/api/v1/{ns}/configmaps", make.config_map("heard"))
        for reader, _ in streams:
            assert b'"name":"heard"' in await reader.readuntil(b"}\n")
        for _, writer in streams:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for _, writer in streams), return_exceptions=True)


def test_a_watcher_that_never_reads_is_cut_and_holds_no_memory(api, raw, ns, make):
    raw.socket.sendall(
        f"GET /api/v1/{ns}/configmaps?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.server.admin_token}\r\n\r\n".encode()
    )
    raw.socket.recv(16)  # it has begun
    table = api.server.store.table("", "configmaps")
    api.made(f"/api/v1/{ns}/configmaps", make.config_map("large"))
    for number in range(160):  # a megabyte each
        assert api.patch(f"/api/v1/{ns}/configmaps/large", {"data": {"a": str(number).zfill(1_000_000)}}).code == 200
        waiting = [subscription.size for subscription in table._subscriptions]
        assert all(size <= 69_000_000 for size in waiting)
    assert table._history_size <= 136_000_000
    assert not [
        subscription
        for subscription in table._subscriptions
        if not subscription.closed and subscription.size > 68_000_000
    ]


def handshake(api, ciphers: str, version: ssl.TLSVersion) -> tuple[str, str]:
    context = ssl.create_default_context(cadata=api.server.ca_pem.decode())
    context.minimum_version = context.maximum_version = version
    context.set_ciphers(ciphers)
    with (
        socket.create_connection(("127.0.0.1", api.server.port), timeout=120) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as tls,
    ):
        name, protocol, _ = tls.cipher()
        return name, protocol


@pytest.mark.parametrize(
    "ciphers", ["ECDHE+AES:!AESGCM:!AESCCM", "AES128-SHA", "AES128-SHA256", "AES256-GCM-SHA384", "DHE+AESGCM"]
)
def test_suites_with_cbc_or_without_forward_secrecy_are_refused(api, ciphers):
    with pytest.raises((ssl.SSLError, OSError)):
        handshake(api, f"{ciphers}:@SECLEVEL=0", ssl.TLSVersion.TLSv1_2)


@pytest.mark.parametrize("ciphers", ["ECDHE+AESGCM", "ECDHE+CHACHA20"])
def test_suites_with_authenticated_encryption_are_taken(api, ciphers):
    assert handshake(api, ciphers, ssl.TLSVersion.TLSv1_2)[1] == "TLSv1.2"
    assert handshake(api, ciphers, ssl.TLSVersion.TLSv1_3)[1] == "TLSv1.3"


def test_no_answer_names_a_version_of_what_serves_it(api, raw):
    answers = [api.get("/version"), api.get("/none"), api.request("POST", CONFIG_MAPS, b"{")]

    assert [answer.headers.get("Server") for answer in answers] == [None] * 3
    assert b"aiohttp" not in raw.exchange(b"nonsense\r\n\r\n")
    with api.watch("/api/v1/namespaces") as frames:
        assert frames.server is None
