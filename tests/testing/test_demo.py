"""How an example finds its cluster, and the one line it says when it cannot."""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from servers import LONGEST_WAIT

from ctrlruntime import certificates
from ctrlruntime.log.options import ERROR, WARN
from ctrlruntime.log.output import sink
from ctrlruntime.manager.flags import Flags
from ctrlruntime.testing import Environment, demo

CONFIG = Path(__file__).parents[2] / "examples" / "memcached" / "config"
FOLDERS = {"crds": CONFIG / "crd", "samples": CONFIG / "samples", "shows": "memcacheds,deployments,pods"}


@pytest.fixture(scope="module")
def server():
    with Environment(backend="embedded") as environment:
        yield environment


@pytest.fixture
def flags(monkeypatch, tmp_path):
    """Makes the flags of an example, in a world without any configuration."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    def make(*argv, kubeconfig=None, context=None):
        parser = argparse.ArgumentParser()
        demo.add_flags(parser)
        from ctrlruntime import log

        return Flags(
            args=parser.parse_args(argv),
            kubeconfig=None if kubeconfig is None else str(kubeconfig),
            context=context,
            metrics_bind_address="0",
            health_probe_bind_address="",
            leader_elect=False,
            leader_election_namespace=None,
            log=log.Options(),
            environ=os.environ,
        )

    return make


@pytest.fixture
def logs():
    lines = []

    class Lines:
        threshold = -100

        def write(self, level, name, event, fields):
            lines.append({"event": event, "level": level, **fields})

    before = sink.output
    sink.output = Lines()
    yield lines
    sink.output = before


def error_of(flags, capsys):
    """Enter the cluster, which must exit with code 1; return the one line it wrote."""
    with pytest.raises(SystemExit) as caught, demo.cluster(flags, **FOLDERS):
        pytest.fail("there is no cluster to run on")
    assert caught.value.code == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.endswith("; run with --embedded to do without a cluster\n")
    return said


def kubeconfig_of(tmp_path, host, **user):
    path = tmp_path / "kubeconfig"
    cluster = {"server": host, "insecure-skip-tls-verify": True}
    path.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": user}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    return path


# --- a configuration that cannot be used ----------------------------------------------------------------------------


def test_a_missing_kubeconfig_is_one_line(flags, tmp_path, capsys):
    said = error_of(flags(kubeconfig=tmp_path / "nowhere"), capsys)

    assert str(tmp_path / "nowhere") in said


def test_a_context_that_does_not_exist_lists_those_that_do(flags, server, capsys):
    said = error_of(flags(kubeconfig=server.kubeconfig_path, context="nonsense"), capsys)

    assert "nonsense" in said


def test_an_expired_certificate_is_named_with_its_date(flags, tmp_path, capsys):
    authority = certificates.make_authority()
    pair = authority.client("jane")
    later = dt.datetime.now(dt.UTC)
    path = kubeconfig_of(tmp_path, "https://127.0.0.1:1", **expired(pair))

    said = error_of(flags(kubeconfig=path), capsys)

    assert "the client certificate of user 'u' (jane) expired on" in said
    assert f"{later - dt.timedelta(days=1):%Y-%m-%d}" in said


def expired(pair):
    """The pair's key with a certificate that ended yesterday."""
    import base64

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    key = serialization.load_pem_private_key(pair.key, None)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "jane")])
    yesterday = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(yesterday - dt.timedelta(days=1))
        .not_valid_after(yesterday)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    return {
        "client-certificate-data": base64.b64encode(pem).decode(),
        "client-key-data": base64.b64encode(pair.key).decode(),
    }


def test_a_server_that_is_not_there_is_one_line(flags, tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]

    said = error_of(flags(kubeconfig=kubeconfig_of(tmp_path, f"http://127.0.0.1:{port}")), capsys)

    assert f"cannot connect to http://127.0.0.1:{port}" in said


def test_a_server_that_is_silent_is_one_line_after_a_while(flags, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"http://127.0.0.1:{silent.getsockname()[1]}"

        said = error_of(flags(kubeconfig=kubeconfig_of(tmp_path, host)), capsys)

    assert f"{host} did not answer within 0.2 s" in said


def test_a_token_the_server_does_not_know_is_one_line(flags, server, tmp_path, capsys):
    path = kubeconfig_of(tmp_path, server.url, token="wrong")

    said = error_of(flags(kubeconfig=path), capsys)

    assert "nauthorized" in said


# --- a cluster that is configured -----------------------------------------------------------------------------------


def test_definitions_that_are_missing_are_named_and_not_installed(flags, server, logs):
    with demo.cluster(flags(kubeconfig=server.kubeconfig_path), **FOLDERS) as found:
        assert found.is_embedded is False

    (line,) = [line for line in logs if line["level"] >= WARN]
    assert line["event"] == "CRDs are not installed, waiting"
    assert line["missing"] == ["memcacheds.cache.example.com"]
    assert line["install"] == f"run with --install, or kubectl apply -f {CONFIG / 'crd'}"


def test_install_installs_them_before_the_example_runs(flags, server, logs):
    with demo.cluster(flags("--install", kubeconfig=server.kubeconfig_path), **FOLDERS):
        path = "/apis/cache.example.com/v1alpha1/memcacheds"
        assert server.connection.request("GET", path)["items"] == []
    with demo.cluster(flags(kubeconfig=server.kubeconfig_path), **FOLDERS):
        pass

    server.uninstall_crds(["memcacheds.cache.example.com"])
    assert not [line for line in logs if line["level"] >= WARN]


def test_a_user_who_may_not_read_definitions_is_told_what_is_missing_all_the_same(flags, server, tmp_path, logs):
    path = tmp_path / "kubeconfig"
    path.write_text(server.add_user("nobody"))

    with demo.cluster(flags(kubeconfig=path), **FOLDERS):
        pass

    assert [line["missing"] for line in logs if line["level"] >= WARN] == [["memcacheds.cache.example.com"]]


# --- the embedded server --------------------------------------------------------------------------------------------


def test_without_any_configuration_it_says_so_and_starts_the_embedded_server(flags, capsys, logs):
    with demo.cluster(flags(), **FOLDERS) as found:
        assert found.is_embedded

    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("no cluster is configured: running on an embedded API server at https://127.0.0.1:")
    assert second.startswith("look at it with:  kubectl --kubeconfig ")
    assert not [line for line in logs if line["level"] >= WARN]


def test_embedded_wins_over_any_configuration(flags, tmp_path, capsys):
    with demo.cluster(flags("--embedded", kubeconfig=tmp_path / "nowhere"), **FOLDERS) as found:
        assert found.is_embedded

    assert capsys.readouterr().err.startswith("running on an embedded API server at ")


def test_its_kubeconfig_is_private_and_goes_where_it_is_asked_to(flags, tmp_path):
    path = tmp_path / "out"

    with demo.cluster(flags("--embedded", "--kubeconfig-out", str(path)), **FOLDERS):
        assert path.stat().st_mode & 0o777 == 0o600
        assert json.loads(path.read_text())["clusters"][0]["cluster"]["server"].startswith("https://127.0.0.1:")


def test_without_kubeconfig_out_the_kubeconfig_goes_with_the_example(flags, capsys):
    with demo.cluster(flags("--embedded"), **FOLDERS):
        path = Path(capsys.readouterr().err.partition("--kubeconfig ")[2].split()[0])
        assert path.exists()

    assert not path.exists()


def test_samples_are_applied_when_the_manager_runs(flags, logs):
    import ctrlruntime as ctrl
    from ctrlruntime.manager.manager import running
    from ctrlruntime.testing import eventually

    async def look(config, found):
        mgr = ctrl.new_manager(config, metrics_bind_address="0")
        found.prepare(mgr)
        async with running(mgr):
            await eventually(lambda: [line for line in logs if line["event"] == "sample applied"])

    with demo.cluster(flags("--embedded"), **FOLDERS) as found:
        asyncio.run(look(found.config, found))

    assert not [line for line in logs if line["level"] >= ERROR]


# --- signals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_example_with_code_0_also_before_the_manager_runs(number, tmp_path):
    program = f"""
import argparse, time
import ctrlruntime as ctrl
from ctrlruntime.testing import demo
parser = argparse.ArgumentParser()
demo.add_flags(parser)
flags = ctrl.parse_flags(["--embedded"], parser=parser)
with demo.cluster(flags, crds={str(CONFIG / "crd")!r}, samples={str(CONFIG / "samples")!r}, shows="pods"):
    print("here", flush=True)
    time.sleep(3600)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "here\n"

        process.send_signal(number)
        _, errors = process.communicate(timeout=LONGEST_WAIT)
    finally:
        process.kill()
        process.communicate()

    assert process.returncode == 0
    assert "Traceback" not in errors
