"""Which server `Environment` takes, and where it finds the binaries: envtest's variables and their rank."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.testing import Environment
from ctrlruntime.testing.controlplane import KUBERNETES_VERSION, find_programs
from ctrlruntime.testing.environment import choose_backend


def binaries(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch(mode=0o755)
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache" / "ctrlruntime" / "controlplane" / KUBERNETES_VERSION
    return binaries(folder, "etcd", "kube-apiserver", "kube-controller-manager")


@pytest.mark.parametrize(
    ("environ", "backend"),
    [
        ({}, "embedded"),
        ({"USE_EXISTING_CLUSTER": "false"}, "embedded"),
        ({"USE_EXISTING_CLUSTER": "true"}, "existing"),
        ({"USE_EXISTING_CLUSTER": "True", "KUBEBUILDER_ASSETS": "/a"}, "existing"),
        ({"KUBEBUILDER_ASSETS": "/a"}, "real"),
        ({"TEST_ASSET_ETCD": "/a/etcd"}, "real"),
        ({"TEST_ASSET_KUBE_APISERVER": "/a/kube-apiserver"}, "real"),
    ],
)
def test_the_variables_choose_the_backend(environ, backend):
    assert choose_backend(environ) == backend
    assert Environment(environ=environ).backend == backend


def test_the_argument_goes_before_the_variables():
    assert Environment(backend="embedded", environ={"USE_EXISTING_CLUSTER": "true"}).backend == "embedded"


def test_an_unknown_backend_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="unknown backend 'kind'; take one of embedded, real, existing"):
        Environment(backend="kind")


def test_the_cache_folder_is_found_without_any_variable(cache, tmp_path):
    found = find_programs({"XDG_CACHE_HOME": str(tmp_path / "cache")})

    assert found.etcd == cache / "etcd"
    assert found.kube_controller_manager == cache / "kube-controller-manager"


def test_the_folder_argument_goes_before_the_cache_and_the_variable_before_both(cache, tmp_path):
    argument = binaries(tmp_path / "argument", "etcd", "kube-apiserver")
    assets = binaries(tmp_path / "assets", "etcd", "kube-apiserver")
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}

    assert find_programs(environ, argument).kube_apiserver.parent == argument
    assert find_programs({**environ, "KUBEBUILDER_ASSETS": str(assets)}, argument).kube_apiserver.parent == assets


def test_a_variable_of_its_own_goes_before_the_folder(cache, tmp_path):
    own = binaries(tmp_path / "own", "my-etcd") / "my-etcd"

    found = find_programs({"KUBEBUILDER_ASSETS": str(cache), "TEST_ASSET_ETCD": str(own)})

    assert (found.etcd, found.kube_apiserver) == (own, cache / "kube-apiserver")


def test_the_controller_manager_may_be_missing_and_is_looked_for_beside_the_api_server(cache, tmp_path):
    assets = binaries(tmp_path / "assets", "etcd", "kube-apiserver")
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "KUBEBUILDER_ASSETS": str(assets)}

    assert find_programs(environ).kube_controller_manager is None


def test_a_controller_manager_that_is_named_must_be_there(cache):
    environ = {"KUBEBUILDER_ASSETS": str(cache), "TEST_ASSET_KUBE_CONTROLLER_MANAGER": "/nowhere/kcm"}

    with pytest.raises(ConfigError, match="needs kube-controller-manager, looked for at /nowhere/kcm"):
        find_programs(environ)


def test_missing_binaries_are_named_with_the_way_to_get_them(tmp_path):
    with pytest.raises(ConfigError, match=r"needs kube-apiserver, .*tests/controlplane/build.*KUBEBUILDER_ASSETS"):
        Environment(backend="real", environ={"KUBEBUILDER_ASSETS": str(tmp_path)}).start()


def test_a_required_controller_manager_that_is_missing_is_an_error(tmp_path):
    assets = binaries(tmp_path, "etcd", "kube-apiserver")
    environment = Environment(backend="real", controller_manager=True, environ={"KUBEBUILDER_ASSETS": str(assets)})

    with pytest.raises(ConfigError, match="TEST_ASSET_KUBE_CONTROLLER_MANAGER"):
        environment.start()


@pytest.mark.parametrize(("text", "seconds"), [("30", 30), ("1m30s", 90), ("500ms", 0.5), ("", 20)])
def test_time_limits_are_seconds_or_durations(text, seconds):
    environment = Environment(environ={"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT": text})

    assert environment.start_timeout == seconds


def test_a_time_limit_that_is_none_is_named():
    with pytest.raises(ConfigError, match="KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT='soon' is not a time"):
        Environment(environ={"KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT": "soon"})


def test_an_environment_that_does_not_run_says_so():
    environment = Environment()

    for use in (lambda: environment.kubeconfig, lambda: environment.url, lambda: environment.kubeconfig_path):
        with pytest.raises(ConfigError, match=r"not running; call start\(\)"):
            use()


def test_stop_without_start_does_nothing():
    environment = Environment()

    environment.stop()

    assert environment.backend == "embedded"
