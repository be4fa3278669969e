from __future__ import annotations

import functools
import os
import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

HEAVY = ("aiohttp", "pydantic", "kubernetes_asyncio", "cryptography", "yaml", "prometheus_client", "structlog")


def test_the_plugin_imports_nothing_heavy():
    code = f"""
import sys
import ctrlruntime.testing.pytest_plugin
print(*(name for name in {HEAVY!r} if name in sys.modules))
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


CHOOSE_A_SERVER = {"KUBEBUILDER_ASSETS", "TEST_ASSET_ETCD", "TEST_ASSET_KUBE_APISERVER", "USE_EXISTING_CLUSTER"}


@pytest.fixture
def run(pytester, forked_pytest):
    env = {name: value for name, value in os.environ.items() if name not in CHOOSE_A_SERVER}
    return functools.partial(forked_pytest.run_pytest, pytester.path, "-p", "no:cacheprovider", env=env)


def test_the_fixtures_give_a_server_and_a_namespace_for_each_test(pytester, run):
    pytester.makepyfile("""
        seen = set()

        def test_one(envtest, namespace):
            assert envtest.backend == "embedded"
            assert envtest.connection.request("GET", f"/api/v1/namespaces/{namespace}")["status"]["phase"] == "Active"
            seen.add(namespace)

        def test_two(namespace):
            assert namespace not in seen
    """)

    run().assert_outcomes(passed=2)


def test_options_are_overridden_in_a_conftest(pytester, run):
    pytester.makeconftest("""
        import pytest

        @pytest.fixture(scope="session")
        def envtest_options():
            return {"backend": "existing", "environ": {"KUBECONFIG": "/nowhere"}}
    """)
    pytester.makepyfile("def test_one(envtest): pass")

    result = run()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no kubeconfig exists at /nowhere*"])


def test_the_option_says_which_server(pytester, run):
    pytester.makepyfile("def test_one(envtest): pass")

    result = run("--envtest-backend=existing", "--collect-only")

    assert result.ret == 0
    refused = run("--envtest-backend=kind")
    refused.stderr.fnmatch_lines(["*no backend 'kind'; take one of embedded, real, existing*"])


def test_several_backends_run_each_test_on_each(pytester, run):
    pytester.makepyfile("def test_one(namespace): pass")

    result = run("--envtest-backend=embedded,real", "--collect-only")

    result.stdout.fnmatch_lines(["*test_one?embedded?*", "*test_one?real?*"])


def test_a_fresh_environment_has_nothing_of_the_tests_before(pytester, run):
    pytester.makepyfile("""
        import pytest

        @pytest.fixture(scope="session")
        def envtest_options():
            return {"crds": {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.example.com"},
                "spec": {
                    "group": "example.com", "scope": "Cluster", "names": {"plural": "widgets", "kind": "Widget"},
                    "versions": [{"name": "v1", "served": True, "storage": True,
                                  "schema": {"openAPIV3Schema": {"type": "object"}}}],
                },
            }}

        WIDGETS = "/apis/example.com/v1/widgets"

        @pytest.mark.parametrize("turn", range(3))
        def test_alone(fresh_envtest, namespace, turn):
            request = fresh_envtest.connection.request
            assert request("GET", WIDGETS)["items"] == []
            names = {item["metadata"]["name"] for item in request("GET", "/api/v1/namespaces")["items"]}
            assert names == {"default", "kube-system", "kube-public", "kube-node-lease", namespace}
            request("POST", "/api/v1/namespaces", {"metadata": {"name": "left"}})
            request("POST", WIDGETS, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "left"}})
    """)

    run().assert_outcomes(passed=3)


def test_on_another_server_a_test_that_needs_a_fresh_one_is_skipped(pytester, run):
    pytester.makepyfile("""
        import pytest

        @pytest.fixture(scope="session")
        def envtest():
            class Real:
                backend = "real"
            return Real()

        def test_alone(fresh_envtest): pass
    """)

    run().assert_outcomes(skipped=1)
