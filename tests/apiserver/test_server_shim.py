from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from servers import free_port

from ctrlruntime.apiserver.shim import install
from ctrlruntime.apiserver.shim.etcd import UsageError as EtcdUsageError
from ctrlruntime.apiserver.shim.etcd import read_flags
from ctrlruntime.apiserver.shim.kube_apiserver import UsageError, main, parse
from ctrlruntime.apiserver.shim.translation import options_from
from ctrlruntime.certificates import make_authority
from ctrlruntime.errors import ConfigError
from ctrlruntime.testing import Environment

pytestmark = pytest.mark.usefixtures("runs_main")

TIME_LIMIT = 20.0


# Flags


@pytest.mark.parametrize(
    ("given", "name", "values"),
    [
        (["--secure-port=6444"], "secure-port", ["6444"]),
        (["--secure-port", "6444"], "secure-port", ["6444"]),
        (["--secure-port=1", "--secure-port=2"], "secure-port", ["1", "2"]),
        (["--allow-privileged"], "allow-privileged", ["true"]),
        (["--allow-privileged=false"], "allow-privileged", ["false"]),
        (["--allow-privileged", "--secure-port=1"], "allow-privileged", ["true"]),
        (["--feature-gates=A=true,B=false"], "feature-gates", ["A=true,B=false"]),
        (["--tls-cert-file", "-"], "tls-cert-file", ["-"]),
        (["-v=4"], "v", ["4"]),
        (["-v4"], "v", ["4"]),
        (["-v", "4"], "v", ["4"]),
        (["--v=4"], "v", ["4"]),
        (["-h"], "help", ["true"]),
        (["--"], "secure-port", None),
    ],
)
def test_every_form_of_a_flag_is_read(given, name, values):
    flags = parse(given)

    assert flags.values.get(name) == values
    assert flags.warnings == []


def test_lists_come_by_commas_and_by_repetition():
    flags = parse(["--authorization-mode=Node,RBAC", "--authorization-mode", "Webhook"])

    assert flags.listed("authorization-mode") == ["Node", "RBAC", "Webhook"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["--insecure-port=0", "--secure-port=1"], ["0"]),
        (["--insecure-port", "0", "--secure-port=1"], ["0"]),
        (["--new-switch", "--secure-port=1"], ["true"]),
        (["--secure-port=1", "--new-switch"], ["true"]),
    ],
)
def test_an_unknown_flag_is_passed_over_with_a_warning_in_every_form(given, kept):
    flags = parse(given)

    name = next(name for name in flags.values if name != "secure-port")
    assert flags.values[name] == kept
    assert flags.last("secure-port") == "1"
    assert flags.warnings == [f"kube-apiserver has no flag --{name}, so it is ignored"]


def test_a_flag_that_asks_for_what_there_is_not_is_warned_about():
    assert parse(["--audit-log-path=-"]).warnings == ["--audit-log-path has no effect on this server"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["serve"], '"kube-apiserver" does not take any arguments, got ["serve"]'),
        (["--", "x"], '"kube-apiserver" does not take any arguments, got ["x"]'),
        (["--secure-port"], "flag needs an argument: --secure-port"),
        (["-v"], "flag needs an argument: 'v' in -v"),
        (["-x"], "unknown shorthand flag: 'x' in -x"),
        (
            ["--allow-privileged=maybe"],
            'invalid argument "maybe" for "--allow-privileged" flag: expected true or false',
        ),
    ],
)
def test_flags_that_cannot_be_read_say_so(given, message):
    with pytest.raises(UsageError) as caught:
        parse(given)

    assert str(caught.value) == message


# What the flags mean


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What a harness writes before it starts the server."""
    folder = tmp_path_factory.mktemp("files")
    authority = make_authority("harness")
    pair = authority.server(["127.0.0.1", "localhost"])
    (folder / "apiserver.crt").write_bytes(pair.certificate)
    (folder / "apiserver.key").write_bytes(pair.key)
    (folder / "ca.crt").write_bytes(authority.pem)
    (folder / "sa.key").write_bytes(make_authority("accounts").pair.key)
    (folder / "tokens.csv").write_text('t0k,admin,uid-1,"system:masters,team"\n\nplain,bob,uid-2\n')
    return folder


def options(files, *given):
    return options_from(parse([f"--cert-dir={files}", *given]))


def test_without_flags_everybody_may_everything_on_6443_and_no_controllers_run(files):
    found, warnings = options(files)

    assert (found.port, found.address, found.authorization) == (6443, "127.0.0.1", "always-allow")
    assert found.controllers == ()
    assert warnings == []


def test_the_pair_of_the_folder_is_served(files):
    found, _ = options(files)

    assert found.serving_pair.certificate == (files / "apiserver.crt").read_bytes()
    assert found.serving_pair.key == (files / "apiserver.key").read_bytes()


def test_an_empty_folder_gets_a_pair_that_only_the_owner_reads(tmp_path):
    found, _ = options_from(parse([f"--cert-dir={tmp_path / 'new'}"]))

    assert (tmp_path / "new" / "apiserver.crt").read_bytes() == found.serving_pair.certificate
    assert found.serving_pair.certificate.count(b"BEGIN CERTIFICATE") == 2
    assert (tmp_path / "new" / "apiserver.key").stat().st_mode & 0o777 == 0o600


def test_named_files_go_before_the_folder(files, tmp_path):
    pair = make_authority("other").server(["127.0.0.1"])
    (tmp_path / "c").write_bytes(pair.certificate)
    (tmp_path / "k").write_bytes(pair.key)

    found, _ = options(files, f"--tls-cert-file={tmp_path / 'c'}", f"--tls-private-key-file={tmp_path / 'k'}")

    assert found.serving_pair == pair


def test_identities_come_from_files(files):
    found, _ = options(
        files,
        f"--client-ca-file={files / 'ca.crt'}",
        f"--token-auth-file={files / 'tokens.csv'}",
        "--service-account-issuer=https://one",
        "--service-account-issuer=https://two",
        f"--service-account-signing-key-file={files / 'sa.key'}",
        f"--service-account-key-file={files / 'sa.key'}",
        f"--service-account-key-file={files / 'ca.crt'}",
    )

    assert found.client_ca == (files / "ca.crt").read_bytes()
    assert found.tokens["t0k"].groups == ("system:masters", "team")
    assert (found.tokens["plain"].name, found.tokens["plain"].uid) == ("bob", "uid-2")
    assert found.service_account_issuer == "https://one"
    assert found.service_account_issuers == ["https://two"]
    assert found.service_account_keys == [(files / name).read_bytes() for name in ("sa.key", "ca.crt")]
    assert found.service_account_signing_key == (files / "sa.key").read_bytes()


@pytest.mark.parametrize(
    ("modes", "authorization"),
    [("RBAC", "rbac"), ("Node,RBAC", "rbac"), ("AlwaysAllow", "always-allow"), ("RBAC,AlwaysAllow", "always-allow")],
)
def test_the_authorization_mode_is_read(files, modes, authorization):
    assert options(files, f"--authorization-mode={modes}")[0].authorization == authorization


def test_further_flags_with_an_effect(files):
    found, warnings = options(
        files,
        "--disable-admission-plugins=ServiceAccount,NamespaceLifecycle",
        "--enable-admission-plugins=NamespaceLifecycle",
        "--service-cluster-ip-range=10.1.0.0/16,fd00::/108",
        "--runtime-config=api/all=true,batch/v1=false",
        "--authorization-mode=Webhook",
    )

    assert found.disabled_admission == {"ServiceAccount"}
    assert found.enabled_admission == {"NamespaceLifecycle"}
    assert found.service_network == "10.1.0.0/16"
    assert found.unserved == {"batch/v1"}
    assert warnings == ["--authorization-mode: Webhook has no effect on this server"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("--secure-port=0", "must be between 1 and 65535"),
        ("--secure-port=x", "must be between 1 and 65535"),
        ("--client-ca-file=/nowhere/ca", "--client-ca-file: cannot read /nowhere/ca: No such file or directory"),
        ("--token-auth-file=/nowhere/t", "--token-auth-file: cannot read /nowhere/t"),
        ("--tls-cert-file=x", "require each other"),
        ("--authorization-mode=Rbac", "mode Rbac does not exist"),
        ("--bind-address=localhost", "is not an IP address"),
        ("--disable-admission-plugins=Priorities", "plugin Priorities does not exist. Use one of AlwaysAdmit, "),
        ("--service-cluster-ip-range=10.0.0.0/33", "is not an IPv4 network"),
        ("-v=high", 'invalid argument "high"'),
    ],
)
def test_values_that_cannot_be_are_one_line(files, given, message, capsys):
    code = main([f"--cert-dir={files}", given])

    said = capsys.readouterr().err
    assert code == 1
    assert len(said.splitlines()) == 1
    assert said.startswith("Error: ")
    assert message in said


def test_a_token_line_that_is_too_short_is_named(files, tmp_path):
    (tmp_path / "t").write_text("a,b,c\nx,y\n")

    with pytest.raises(ConfigError, match=r"line 2 of .* must have at least three columns"):
        options(files, f"--token-auth-file={tmp_path / 't'}")


# The programs


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("assets")
    install(folder)
    return folder


@contextlib.contextmanager
def started(*command):
    # Unbuffered: a line that Python holds in a buffer of its own would not wake `said` up.
    with subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, bufsize=0) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(TIME_LIMIT)
            finally:
                process.kill()  # otherwise `Popen` waits without a limit


def said(process, words):
    """Read the program's standard error until a line with these words; return everything read."""
    lines = []
    deadline = time.monotonic() + TIME_LIMIT
    while not lines or words not in lines[-1]:
        ready, _, _ = select.select([process.stderr], [], [], max(deadline - time.monotonic(), 0.0))
        assert ready, lines
        lines.append(process.stderr.readline().decode())
        assert lines[-1], lines
    return lines


def get(port, path, *, token="", ca=None, pair=None, method="GET", body=None):
    if ca is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIME_LIMIT)
    else:
        context = ssl.create_default_context(cadata=ca.decode())
        if pair is not None:
            with tempfile.NamedTemporaryFile() as file:
                file.write(pair.certificate + pair.key)
                file.flush()
                context.load_cert_chain(file.name)
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=TIME_LIMIT)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def harness(tmp_path_factory, programs):
    """A kube-apiserver as envtest starts it: (process, port, authority)."""
    folder = tmp_path_factory.mktemp("harness")
    authority, clients = make_authority("envtest"), make_authority("clients")
    pair = authority.server(["127.0.0.1"])
    (folder / "apiserver.crt").write_bytes(pair.certificate)
    (folder / "apiserver.key").write_bytes(pair.key)
    (folder / "clients.crt").write_bytes(clients.pem)
    (folder / "sa.key").write_bytes(make_authority("accounts").pair.key)
    (folder / "tokens.csv").write_text('t0k,admin,1,"system:masters"\nplain,bob,2\n')
    port = free_port()
    flags = [
        "--allow-privileged=true",
        "--authorization-mode=RBAC",
        "--bind-address=127.0.0.1",
        f"--cert-dir={folder}",
        f"--client-ca-file={folder / 'clients.crt'}",
        "--disable-admission-plugins=ServiceAccount",
        "--etcd-servers=http://127.0.0.1:1",
        f"--secure-port={port}",
        f"--service-account-issuer=https://127.0.0.1:{port}/",
        f"--service-account-key-file={folder / 'sa.key'}",
        f"--service-account-signing-key-file={folder / 'sa.key'}",
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--some-day=1",
    ]
    with started(programs / "kube-apiserver", *flags) as process:
        lines = said(process, f"Serving securely on 127.0.0.1:{port}")
        assert lines[:-1] == ["warning: kube-apiserver has no flag --some-day, so it is ignored\n"]
        yield process, port, authority, clients


@pytest.mark.parametrize("page", ["healthz", "readyz", "livez"])
def test_the_health_pages_answer_anybody(harness, page):
    _, port, authority, _ = harness

    assert get(port, f"/{page}", ca=authority.pem) == (200, "ok")
    status, text = get(port, f"/{page}?verbose", ca=authority.pem)
    assert status == 200
    assert text.splitlines()[0] == "[+]ping ok"
    assert text.splitlines()[-1] == f"{page} check passed"


def test_a_token_of_the_file_is_known_with_its_groups(harness):
    _, port, authority, _ = harness

    assert get(port, "/api/v1/namespaces/default", token="t0k", ca=authority.pem)[0] == 200
    assert get(port, "/api/v1/namespaces/default", token="plain", ca=authority.pem)[0] == 403
    assert get(port, "/api/v1/namespaces/default", token="else", ca=authority.pem)[0] == 401


def test_a_certificate_of_the_client_authority_says_who_one_is(harness):
    _, port, authority, clients = harness
    path, review = (
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        {
            "kind": "SelfSubjectReview",
            "apiVersion": "authentication.k8s.io/v1",
        },
    )

    robin = clients.client("robin", ["system:masters", "team"])
    status, text = get(port, path, ca=authority.pem, pair=robin, method="POST", body=review)

    assert status == 201
    user = json.loads(text)["status"]["userInfo"]
    assert user["username"] == "robin"
    assert set(user["groups"]) == {"system:masters", "team", "system:authenticated"}


def test_a_certificate_of_another_authority_is_refused(harness):
    _, port, authority, _ = harness
    stranger = make_authority("stranger").client("robin", ["system:masters"])

    with pytest.raises((ssl.SSLError, OSError)):
        get(port, "/api/v1/namespaces", ca=authority.pem, pair=stranger)


def test_service_account_tokens_have_the_issuer(harness):
    _, port, authority, _ = harness
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    get(port, accounts, token="t0k", ca=authority.pem, method="POST", body={"metadata": {"name": "robot"}})
    status, text = get(port, f"{accounts}/robot/token", token="t0k", ca=authority.pem, method="POST", body={"spec": {}})

    assert status == 201
    part = json.loads(text)["status"]["token"].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    assert claims["iss"] == f"https://127.0.0.1:{port}/"


def test_no_controller_runs(harness):
    _, port, authority, _ = harness
    status, text = get(port, "/api/v1/nodes", token="t0k", ca=authority.pem)

    assert (status, json.loads(text)["items"]) == (200, [])
    assert (
        json.loads(get(port, "/api/v1/namespaces/default/configmaps", token="t0k", ca=authority.pem)[1])["items"] == []
    )


def test_the_version_is_that_of_the_real_one(harness):
    _, port, authority, _ = harness

    assert json.loads(get(port, "/version", ca=authority.pem)[1])["gitVersion"] == "v1.36.1"


def test_several_run_at_once_and_end_with_code_0(programs, tmp_path):
    ports = [free_port() for _ in range(3)]
    command = [programs / "kube-apiserver", f"--cert-dir={tmp_path}"]
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(started(*command, f"--secure-port={port}")) for port in ports]
        for process, port in zip(running, ports, strict=True):
            said(process, f"Serving securely on 127.0.0.1:{port}")
        for process in running:
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(TIME_LIMIT) for process in running]

    assert codes == [0, 0, 0]


def test_a_taken_port_is_named_as_harnesses_expect_it(programs, files):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [programs / "kube-apiserver", f"--cert-dir={files}", f"--secure-port={port}"],
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
        )

    assert done.returncode == 1
    assert "address already in use" in done.stderr.lower()


def test_a_group_version_that_is_switched_off_is_not_served(programs, files):
    port = free_port()
    ca = (files / "ca.crt").read_bytes()
    with started(
        programs / "kube-apiserver", f"--cert-dir={files}", f"--secure-port={port}", "--runtime-config=batch/v1=false"
    ) as process:
        said(process, "Serving securely")
        assert get(port, "/apis/batch/v1/jobs", ca=ca)[0] == 404
        assert get(port, "/apis/apps/v1/deployments", ca=ca)[0] == 200


def test_services_get_addresses_of_the_range(programs, files):
    port, ca = free_port(), (files / "ca.crt").read_bytes()
    with started(
        programs / "kube-apiserver",
        f"--cert-dir={files}",
        f"--secure-port={port}",
        "--service-cluster-ip-range=172.20.0.0/16",
    ) as process:
        said(process, "Serving securely")
        path = "/api/v1/namespaces/default/services"
        body = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
        made = json.loads(get(port, path, ca=ca, method="POST", body=body)[1])
        own = json.loads(get(port, f"{path}/kubernetes", ca=ca)[1])

    assert made["spec"]["clusterIP"].startswith("172.20.")
    assert own["spec"]["clusterIP"] == "172.20.0.1"


def test_without_namespace_lifecycle_an_object_needs_no_namespace(programs, files):
    port, ca = free_port(), (files / "ca.crt").read_bytes()
    with started(
        programs / "kube-apiserver",
        f"--cert-dir={files}",
        f"--secure-port={port}",
        "--disable-admission-plugins=NamespaceLifecycle",
    ) as process:
        said(process, "Serving securely")
        body = {"metadata": {"name": "a"}}
        assert get(port, "/api/v1/namespaces/nowhere/configmaps", ca=ca, method="POST", body=body)[0] == 201


@pytest.mark.parametrize("flag", ["--client-ca-file", "--service-account-signing-key-file"])
def test_a_file_that_is_no_key_is_one_line(files, flag, capsys):
    code = main([f"--cert-dir={files}", f"--secure-port={free_port()}", f"{flag}={files / 'tokens.csv'}"])

    said = capsys.readouterr().err
    assert code == 1
    assert len(said.splitlines()) == 1
    assert said.startswith("Error: ")


@pytest.mark.parametrize(
    ("program", "flag"),
    [("kube-apiserver", "--secure-port"), ("kube-apiserver", "--service-cluster-ip-range"), ("etcd", "--unsafe-no-fsync"), ("etcd", "--data-dir")],
)  # fmt: skip
def test_help_lists_the_flags_that_harnesses_look_for(programs, program, flag):
    done = subprocess.run(
        [programs / program, "--help"], capture_output=True, text=True, timeout=TIME_LIMIT, check=True
    )

    assert flag in {line.split()[0] for line in done.stdout.splitlines() if line.strip().startswith("--")}
    assert "insecure-port" not in done.stdout


def test_versions_are_those_of_the_real_ones(programs):
    def version(program):
        return subprocess.run(
            [programs / program, "--version"], capture_output=True, text=True, timeout=TIME_LIMIT, check=True
        ).stdout

    assert version("kube-apiserver") == "Kubernetes v1.36.1\n"
    assert version("etcd").startswith("etcd Version: 3.6.8\n")


# etcd


def test_etcd_answers_health_and_ends_on_sigterm(programs, tmp_path):
    port = free_port()
    with started(
        programs / "etcd",
        f"--data-dir={tmp_path / 'data'}",
        f"--listen-client-urls=http://127.0.0.1:{port}",
        f"--advertise-client-urls=http://127.0.0.1:{port}",
        "--listen-peer-urls=http://localhost:0",
        "--unsafe-no-fsync",
        "-log-level",
        "warn",
        "--made-up",
    ) as process:
        lines = said(process, "serving client traffic")
        assert lines[0] == "warning: etcd has no flag --made-up, so it is ignored\n"
        assert get(port, "/health") == (200, '{"health":"true","reason":""}')
        assert json.loads(get(port, "/version")[1])["etcdserver"] == "3.6.8"
        assert get(port, "/v2/keys")[0] == 404
        assert get(port, "/health", method="POST")[0] == 405
        assert (tmp_path / "data").is_dir()
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIME_LIMIT) == 0


def test_etcd_speaks_tls_on_https_urls(programs, files):
    port = free_port()
    with started(
        programs / "etcd",
        f"--listen-client-urls=https://127.0.0.1:{port}",
        f"--cert-file={files / 'apiserver.crt'}",
        f"--key-file={files / 'apiserver.key'}",
    ) as process:
        said(process, "serving client traffic")
        assert get(port, "/health", ca=(files / "ca.crt").read_bytes())[0] == 200


def test_etcd_takes_flags_with_one_dash_and_from_the_environment():
    values, unknown = read_flags(
        ["-data-dir", "/d", "--name=n", "-unsafe-no-fsync"], {"ETCD_LOG_LEVEL": "warn", "HOME": "/"}
    )

    assert values == {"log-level": "warn", "data-dir": "/d", "name": "n", "unsafe-no-fsync": "true"}
    assert unknown == []


def test_etcd_refuses_what_is_no_flag():
    with pytest.raises(EtcdUsageError, match="'start' is not a valid flag"):
        read_flags(["start"], {})


def test_a_client_that_says_nothing_does_not_hold_etcd_up(programs):
    port = free_port()
    with started(programs / "etcd", f"--listen-client-urls=http://127.0.0.1:{port}") as process:
        said(process, "serving client traffic")
        with socket.create_connection(("127.0.0.1", port)):
            assert get(port, "/health")[0] == 200


def test_etcd_sees_a_signal_that_does_not_interrupt_the_main_thread():
    # In a process of its own, because signal handlers are those of the whole process.
    code = """if True:
        import signal, threading
        from ctrlruntime.apiserver.shim.etcd import stop_signal

        arrived = stop_signal()
        arrived.settimeout(60)
        other = threading.Thread(target=lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM))
        other.start()
        assert arrived.recv(1) == bytes([signal.SIGTERM])
    """
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=TIME_LIMIT).returncode == 0


# Installation


def test_a_shell_can_evaluate_what_the_command_prints(tmp_path):
    folder = tmp_path / "with space"
    done = subprocess.run(
        [sys.executable, "-m", "ctrlruntime.apiserver", "shim", str(folder)],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=True,
    )
    shell = subprocess.run(
        ["/bin/sh", "-c", f"{done.stdout}\n'{folder}/etcd' --version && echo \"$KUBEBUILDER_ASSETS\""],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=True,
    )

    assert shell.stdout.splitlines()[-1] == str(folder)
    assert f"to {folder}" in done.stderr


def test_earlier_programs_are_replaced(tmp_path):
    install(tmp_path)
    first = (tmp_path / "etcd").stat().st_ino
    install(tmp_path)

    assert (tmp_path / "etcd").stat().st_ino != first
    assert os.access(tmp_path / "etcd", os.X_OK)


def test_programs_that_are_not_ours_are_left_alone(tmp_path):
    (tmp_path / "etcd").write_bytes(b"\x7fELF" + b"\0" * 1000)

    with pytest.raises(ConfigError, match="exists, and was not written by this command"):
        install(tmp_path)
    assert (tmp_path / "etcd").read_bytes()[:4] == b"\x7fELF"


def test_kubectl_is_linked_where_it_is_found(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    kubectl = tmp_path / "bin" / "kubectl"
    kubectl.write_text("#!/bin/sh\n")
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    with_it = install(tmp_path / "one")
    monkeypatch.setenv("PATH", str(tmp_path))
    without = install(tmp_path / "two")

    assert [path.name for path in with_it] == ["kube-apiserver", "etcd", "kubectl"]
    assert (tmp_path / "one" / "kubectl").readlink() == kubectl
    assert [path.name for path in without] == ["kube-apiserver", "etcd"]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match="cannot write the programs"):
        install(tmp_path / "file" / "folder")


# Our own environment on the programs


def test_the_environment_runs_on_them(programs, make):
    environ = {**os.environ, "KUBEBUILDER_ASSETS": str(programs)}
    with Environment(backend=None, environ=environ, crds=make.definition("widgets", "Widget")) as environment:
        assert environment.backend == "real"
        namespace = environment.create_namespace()
        path = f"/apis/{make.group}/v1/namespaces/{namespace}/widgets"
        environment.connection.request("POST", path, make.widget("one"))
        found = environment.connection.request("GET", f"{path}/one")
        alice = environment.add_user("alice", ["system:masters"])

    assert found["spec"] == {"size": 1, "mode": "A"}
    assert "client-certificate-data" in alice


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_the_linked_kubectl_speaks_to_them(programs, tmp_path):
    environ = {**os.environ, "KUBEBUILDER_ASSETS": str(programs)}
    with Environment(environ=environ) as environment:
        done = subprocess.run(
            [Path(programs, "kubectl"), "--kubeconfig", environment.kubeconfig_path, "get", "namespaces", "-o", "name"],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
            env={**os.environ, "HOME": str(tmp_path)},
        )

    assert "namespace/default" in done.stdout.splitlines()
