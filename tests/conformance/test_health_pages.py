"""The health pages, on both servers: harnesses wait for them."""

from __future__ import annotations

import base64
import http.client
import ssl

import pytest
import yaml


@pytest.fixture
def page(server):
    """Ask for a page as the administrator; (status, text, whether the header against guessing of types is there)."""
    config = yaml.safe_load(server.kubeconfig)
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    host = cluster["server"].removeprefix("https://")
    connection = http.client.HTTPSConnection(host, context=context, timeout=120)

    def get(path, method="GET"):
        connection.request(method, path, headers={"Authorization": f"Bearer {user['token']}"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), "X-Content-Type-Options" in answer.headers

    yield get
    connection.close()


@pytest.mark.parametrize("name", ["healthz", "livez", "readyz"])
def test_a_page_says_ok(page, name):
    assert page(f"/{name}") == (200, "ok", True)
    assert page(f"/{name}?exclude=etcd&exclude=nope") == (200, "ok", True)
    assert page(f"/{name}", "POST") == (200, "ok", True)


@pytest.mark.parametrize("name", ["healthz", "livez", "readyz"])
def test_one_check_answers_alone(page, name):
    assert page(f"/{name}/etcd") == (200, "ok", False)
    assert page(f"/{name}/poststarthook/crd-informer-synced?verbose") == (200, "ok", False)
    assert page(f"/{name}/nope") == (404, "404 page not found\n", True)


def test_checks_of_readiness_alone(page):
    assert page("/readyz/shutdown")[0] == 200
    assert page("/readyz/informer-sync")[0] == 200
    assert page("/livez/shutdown")[0] == 404


SECOND = {
    "healthz": "[+]log ok\n[+]loopback-serving-certificate ok\n",
    "livez": "[+]log ok\n[+]loopback-serving-certificate ok\n",
    "readyz": "[+]log ok\n[+]etcd excluded: ok\n",
}


@pytest.mark.parametrize("name", ["healthz", "livez", "readyz"])
def test_verbose_lists_the_checks_and_what_is_left_out(page, name):
    status, text, _ = page(f"/{name}?verbose&exclude=etcd&exclude=nope")

    assert status == 200
    assert text.startswith(f"[+]ping ok\n{SECOND[name]}")
    assert "[+]etcd excluded: ok\n" in text
    assert "[+]poststarthook/rbac/bootstrap-roles ok\n" in text
    assert text.endswith(f'warn: some health checks cannot be excluded: no matches for "nope"\n{name} check passed\n')
    assert len(text.splitlines()) == {"healthz": 36, "livez": 36, "readyz": 38}[name]
