"""`ctrl why`: it asks a running operator, and says clearly what is wrong when it cannot.

That it reads an operator in a cluster is tested on the real server, in tests/conformance.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
import yaml
from click.testing import CliRunner
from servers import free_port
from shop_project import shop

from ctrlruntime.cli import ctrl
from ctrlruntime.errors import NotFound
from ctrlruntime.explain import facts
from ctrlruntime.ownership.state import SlotOwner
from ctrlruntime.project.deployment import debugging
from ctrlruntime.project.deployment.portforward import Page
from ctrlruntime.project.running import DEBUG_ADDRESS

__all__ = ["shop"]

ANSWER = facts.Why(
    now=1000.0,
    kind="Web",
    namespace="ns",
    name="a",
    watches=[],
    answers=[
        facts.Answer(
            controller="web", group="", kind="Web", request="ns/a", namespace="ns", name="a", cluster="", is_started=True,
            cached_version="7", unseen="", unsynced=[], loops=[], running=None, queued=None, failures=0, next="when something changes", next_at=None, runs=[],
        )
    ],
    led_to=[],
)  # fmt: skip


class Operator:
    """Answers every request with `status` and `body`, and notes what it was asked."""

    def __init__(self):
        self.status = 200
        self.body = msgspec.json.encode(ANSWER)
        self.asked = []
        operator = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                operator.asked.append(self.path)
                self.send_response(operator.status)
                self.send_header("Content-Length", str(len(operator.body)))
                self.end_headers()
                self.wfile.write(operator.body)

            def log_message(self, *_):
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"


@contextlib.contextmanager
def answering() -> Iterator[Operator]:
    operator = Operator()
    thread = threading.Thread(target=operator.server.serve_forever, args=(0.01,))
    thread.start()
    yield operator
    operator.server.shutdown()
    operator.server.server_close()
    thread.join()


@pytest.fixture
def operator() -> Iterator[Operator]:
    with answering() as operator:
        yield operator


def why(*arguments, address):
    addresses = [address] if isinstance(address, str) else address
    options = [text for each in addresses for text in ("--address", each)]
    done = CliRunner().invoke(ctrl, ["why", *arguments, *options])
    return done.exit_code, done.stdout, done.stderr


def test_the_answer_is_printed_as_lines(operator):
    code, out, err = why("Web", "ns/a", address=operator.address)

    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "Web ns/a  (controller web; version 7 in the cache)"


def test_the_question_has_kind_namespace_name_controller_and_cluster(operator):
    why("webs.example.com", "n&s/a b", "--controller", "w", "--cluster", "secrets/eu", address=operator.address)

    (path,) = operator.asked
    assert urlsplit(path).path == "/debug/ctrlruntime/why"
    query = parse_qs(urlsplit(path).query)
    assert query == {
        "kind": ["webs.example.com"],
        "namespace": ["n&s"],
        "name": ["a b"],
        "controller": ["w"],
        "cluster": ["secrets/eu"],
    }


def test_a_cluster_scoped_object_has_a_name_only(operator):
    why("Node", "one", address=operator.address)

    assert parse_qs(urlsplit(operator.asked[0]).query) == {"kind": ["Node"], "name": ["one"]}


def test_json_is_printed_as_it_came(operator):
    code, out, _ = why("Web", "ns/a", "--json", address=operator.address)

    assert (code, json.loads(out)["answers"][0]["controller"]) == (0, "web")


def test_a_port_alone_is_on_this_machine(operator):
    code, _, err = why("Web", "ns/a", address=operator.address.replace("127.0.0.1", ""))

    assert (code, err) == (0, "")


def test_a_refusal_is_one_line(operator):
    operator.status = 404
    operator.body = msgspec.json.encode(facts.Refusal(error="no controller reconciles 'Wob'; did you mean 'Web'?"))

    assert why("Wob", "ns/a", address=operator.address) == (
        1,
        "",
        "error: no controller reconciles 'Wob'; did you mean 'Web'?\n",
    )


def test_an_event_loop_that_does_not_answer_is_shown_with_its_stack(operator):
    operator.status = 503
    operator.body = msgspec.json.encode(facts.Refusal(error="has not answered for 9 s", stack=["op.py:7 in f"]))

    code, _, err = why("Web", "ns/a", address=operator.address)
    assert (code, err) == (1, "error: has not answered for 9 s\n  op.py:7 in f\n")


def test_another_server_is_told_from_an_operator(operator):
    operator.status, operator.body = 404, b"404: Not Found"
    code, _, err = why("Web", "ns/a", address=operator.address)
    assert code == 1
    assert "no debug pages at" in err
    assert "--debug-bind-address" in err

    operator.status, operator.body = 500, b"oh no"
    assert "responds with status 500: oh no" in why("Web", "ns/a", address=operator.address)[2]

    operator.status, operator.body = 200, b"<html>"
    code, _, err = why("Web", "ns/a", address=operator.address)
    assert code == 1
    assert "not that of an operator of this version" in err


def test_nobody_at_the_address_says_what_to_do():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    code, _, err = why("Web", "ns/a", address=f"127.0.0.1:{port}")
    assert code == 1
    assert f"no response from 127.0.0.1:{port}" in err
    assert "kubectl port-forward" in err
    assert len(err.splitlines()) == 1


def test_what_speaks_no_http_is_told():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            connection.recv(100)
            connection.sendall(b"\x16\x03\x01 garbage\r\n")
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        code, _, err = why("Web", "ns/a", address=f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()

    assert code == 1
    assert "is not a debug page" in err


@pytest.mark.parametrize("address", ["localhost", "http://localhost:1/", "localhost:0", "localhost:99999", "a:b"])
def test_an_address_that_is_none_is_refused(address):
    code, _, err = why("Web", "ns/a", address=address)

    assert code == 1
    assert "must be HOST:PORT" in err


@pytest.mark.parametrize("arguments", [("Web", "ns/"), ("Web",), ()])
def test_a_question_without_a_name_is_wrong_usage(arguments):
    assert why(*arguments, address="127.0.0.1:1")[0] == 2


def test_without_an_address_it_finds_the_operator_of_ctrl_run(operator, shop, monkeypatch):
    shop.write()
    file = shop.folder / DEBUG_ADDRESS
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{operator.address}\n")
    monkeypatch.chdir(shop.folder / "config")

    done = CliRunner().invoke(ctrl, ["why", "Web", "ns/a"])

    assert (done.exit_code, done.stderr) == (0, "")
    assert len(operator.asked) == 1


def test_without_an_address_and_an_operator_here_it_says_how_to_start_one(shop, tmp_path, monkeypatch):
    shop.write()

    nothing_runs = CliRunner().invoke(ctrl, ["why", "Web", "ns/a"])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (shop.folder / "pyproject.toml").unlink()
    no_project = CliRunner().invoke(ctrl, ["why", "Web", "ns/a"])

    assert (nothing_runs.exit_code, no_project.exit_code) == (1, 1)
    assert "does not run here, and no cluster is configured" in nothing_runs.stderr
    assert nothing_runs.stderr.endswith("Start it with `ctrl run`, or pass --address\n")
    assert "is not in a project" in no_project.stderr
    assert no_project.stderr.endswith(FORWARD)
    assert len((nothing_runs.stderr + no_project.stderr).splitlines()) == 2


# --- the operator in a cluster ----------------------------------------------------------------------------------------

FORWARD = "forward the port with `kubectl port-forward deployment/NAME 8082`, and pass --address 127.0.0.1:8082\n"


def alternative(shop, name=None):
    command = f"kubectl -n {shop.namespace} port-forward {name or f'deployment/{shop.name}-controller-manager'} 8082"
    return f", or forward the port with `{command}`, and pass --address 127.0.0.1:8082\n"


def pods_of(shop, server):
    found = server.connection.request("GET", f"/api/v1/namespaces/{shop.namespace}/pods")["items"]
    return sorted(each["metadata"]["name"] for each in found)


def test_address_and_cluster_together_are_wrong_usage():
    done = CliRunner().invoke(ctrl, ["why", "Web", "ns/a", "--address", "127.0.0.1:1", "--context", "test"])

    assert done.exit_code == 2
    assert "--address cannot be used with --kubeconfig or --context" in done.stderr


def test_address_of_a_killed_ctrl_run_is_reported_and_the_cluster_is_next(run, shop, server, monkeypatch):
    shop.write()
    file = shop.folder / DEBUG_ADDRESS
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"127.0.0.1:{free_port()}\n")
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig_path))

    done = CliRunner().invoke(ctrl, ["why", "Web", "ns/a"])

    warning, error = done.stderr.splitlines()
    assert done.exit_code == 1
    assert warning.startswith("warning: the operator of `ctrl run` no longer runs at 127.0.0.1:")
    assert f" has no Deployment {shop.deployment}. " in error


def test_named_cluster_is_read_also_while_ctrl_run_runs(operator, run, shop):
    shop.write()
    file = shop.folder / DEBUG_ADDRESS
    file.parent.mkdir(exist_ok=True)
    file.write_text(operator.address)

    done = run("why", "Web", "ns/a")

    assert (done.exit_code, operator.asked) == (1, [])
    assert f" has no Deployment {shop.deployment}. " in done.stderr
    assert "Deploy the operator with `ctrl deploy`, or run it here with `ctrl run`" in done.stderr
    assert done.stderr.endswith(alternative(shop))


def test_cluster_that_does_not_respond_is_one_line(shop, server):
    shop.write()
    file = shop.folder / "kubeconfig"
    config = yaml.safe_load(server.kubeconfig)
    config["clusters"][0]["cluster"] |= {"server": f"https://127.0.0.1:{free_port()}"}
    file.write_text(yaml.safe_dump(config))

    done = CliRunner().invoke(ctrl, ["why", "Web", "ns/a", "--kubeconfig", str(file)])

    assert done.exit_code == 1
    assert "cannot connect to https://127.0.0.1:" in done.stderr
    assert ". Check the kubeconfig and its context, or forward the port" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_project_without_a_deployment_says_so(run, shop):
    shop.write()
    (shop.folder / "config/default/kustomization.yaml").write_text("resources: []\n")
    nothing = run("why", "Web", "ns/a")
    (shop.folder / "config/default/kustomization.yaml").unlink()
    no_tree = run("why", "Web", "ns/a")

    assert "config/default has no Deployment with a container manager. Add it." in nothing.stderr
    assert "cannot find the Deployment of the operator: " in no_tree.stderr
    assert [done.stderr.endswith(FORWARD) for done in (nothing, no_tree)] == [True, True]


def test_embedded_server_runs_no_operator_and_the_message_says_what_does(run, shop, server):
    shop.write()
    assert run("deploy").exit_code == 0

    done = run("why", "Web", "ns/a")

    [pod] = pods_of(shop, server)
    told, error = done.stderr.splitlines()
    assert (done.exit_code, done.stdout) == (1, "")
    assert told == f"operator: Pod {shop.namespace}/{pod}"
    assert error == (
        f"error: Pod {shop.namespace}/{pod} runs no operator: the embedded API server simulates Pods and starts no containers. "
        "Run the operator with `ctrl run`"
    )


def test_who_may_not_read_pods_or_forward_ports_is_told_which_permission(shop, run, server):
    shop.write()
    assert run("deploy").exit_code == 0
    file = shop.folder / "kubeconfig"
    file.write_text(server.add_user("reader"))
    command = ["why", "Web", "ns/a", "--kubeconfig", str(file)]

    nothing = CliRunner().invoke(ctrl, command)
    server.connection.request(
        "POST",
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{shop.namespace}/rolebindings",
        {
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}],
        },
    )
    reads = CliRunner().invoke(ctrl, command)

    [pod] = pods_of(shop, server)
    assert (nothing.exit_code, reads.exit_code) == (1, 1)
    assert 'User "reader" cannot get resource "deployments"' in nothing.stderr
    assert nothing.stderr.endswith(alternative(shop))
    assert 'cannot get resource "pods/portforward"' in reads.stderr
    assert f"Ask for the verbs get and create on pods/portforward in namespace {shop.namespace}" in reads.stderr
    assert reads.stderr.endswith(alternative(shop, f"pod/{pod}"))


def test_operator_without_debug_pages_says_what_to_add(run, shop):
    shop.write()
    manager = shop.folder / "config/manager/manager.yaml"
    flag = "        - --debug-bind-address=127.0.0.1:8082\n"
    assert flag in manager.read_text()
    manager.write_text(manager.read_text().replace(flag, ""))
    assert run("deploy").exit_code == 0

    done = run("why", "Web", "ns/a")

    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
    assert done.stderr.endswith(
        "serves no debug pages. Add the argument --debug-bind-address=127.0.0.1:8082 to the container manager in "
        "config/manager/manager.yaml, and run `ctrl deploy`\n"
    )


@pytest.mark.parametrize(
    ("replicas", "what", "instead"),
    [
        pytest.param(0, "Deployment {deployment} has no Pods. Find the reason with `ctrl doctor`", None, id="no Pod"),
        pytest.param(2, "several ready Pods ({pods}), and none of them holds a Lease", "pod/NAME", id="no leader"),
    ],
)
def test_without_one_pod_to_choose_the_reason_and_an_alternative_are_told(run, shop, server, replicas, what, instead):
    shop.write()
    manager = shop.folder / "config/manager/manager.yaml"
    manager.write_text(manager.read_text().replace("replicas: 1", f"replicas: {replicas}"))
    assert run("deploy").exit_code == 0

    done = run("why", "Web", "ns/a")

    assert done.exit_code == 1
    assert what.format(deployment=shop.deployment, pods=", ".join(pods_of(shop, server))) in done.stderr
    assert done.stderr.endswith(alternative(shop, instead).removeprefix(", or "))


# --- replicas that share the objects ----------------------------------------------------------------------------------


def owned_by(owner: str, *, is_here: bool) -> bytes:
    shard = SlotOwner(slot=3, of=64, owner=owner, member=f"shop-{owner}", following="", is_here=is_here, state="open")
    answer = msgspec.structs.replace(ANSWER.answers[0], shard=shard, elsewhere=[] if is_here else [owner])
    return msgspec.json.encode(msgspec.structs.replace(ANSWER, answers=[answer]))


def test_replica_that_has_the_object_is_the_one_that_answers(run, shop, monkeypatch):
    async def debug_page(cluster, deployment, target, *, timeout, pod_name="", tell):
        tell(pod_name or "first")
        return Page(200, owned_by("second", is_here=pod_name == "second"))

    monkeypatch.setattr(debugging, "debug_page", debug_page)
    shop.write()

    done = run("why", "Web", "ns/a")

    assert done.stderr == "operator: Pod first\noperator: Pod second\n"
    assert "  replica          second (this one), slot 3 of 64" in done.stdout


def test_replica_that_is_no_pod_is_named(run, shop, monkeypatch):
    async def debug_page(cluster, deployment, target, *, timeout, pod_name="", tell):
        if pod_name:
            raise NotFound("pods not found")
        tell("first")
        return Page(200, owned_by("laptop", is_here=False))

    monkeypatch.setattr(debugging, "debug_page", debug_page)
    shop.write()

    done = run("why", "Web", "ns/a")

    assert done.exit_code == 0
    assert "  replica          laptop, slot 3 of 64" in done.stdout


def test_replica_with_an_unknown_owner_is_one_of_the_others(run, shop, monkeypatch):
    """With shard_by="uid" only the replica that has the object knows it."""
    pods = ["first", "second", "third"]

    async def debug_page(cluster, deployment, target, *, timeout, pod_name="", tell):
        pod = pod_name or "first"
        tell(pod)
        if pod == "third":
            return Page(200, owned_by("third", is_here=True))
        answer = msgspec.structs.replace(ANSWER.answers[0], elsewhere=[each for each in pods if each != pod])
        return Page(200, msgspec.json.encode(msgspec.structs.replace(ANSWER, answers=[answer])))

    monkeypatch.setattr(debugging, "debug_page", debug_page)
    shop.write()

    done = run("why", "Web", "ns/a")

    assert done.stderr == "".join(f"operator: Pod {pod}\n" for pod in pods)
    assert "  replica          third (this one), slot 3 of 64" in done.stdout


@pytest.fixture
def operators() -> Iterator[list[Operator]]:
    """Three replicas: one that does not have the object, the one that has it, and one that never saw it."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(answering()) for _ in range(3)]
        found[0].body = owned_by("second", is_here=False)
        found[1].body = owned_by("second", is_here=True)
        found[2].status, found[2].body = 404, b'{"error": "never seen"}'
        yield found


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)])
def test_replica_that_has_the_object_is_found_among_addresses(operators, order):
    code, out, err = why("Web", "ns/a", address=[operators[each].address for each in order])

    assert (code, err) == (0, "")
    assert "  replica          second (this one), slot 3 of 64" in out


def test_first_response_is_printed_if_no_address_has_the_object(operators):
    code, out, _ = why("Web", "ns/a", address=[operators[2].address, operators[0].address])

    assert code == 0
    assert "  replica          second, slot 3 of 64" in out


def test_first_error_is_printed_if_no_address_responds(operators):
    code, out, err = why("Web", "ns/a", address=[operators[2].address, f"127.0.0.1:{free_port()}"])

    assert (code, out) == (1, "")
    assert err == "error: never seen\n"
