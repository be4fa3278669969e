"""`ctrl why`: it asks a running operator, and says clearly what is wrong when it cannot."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from click.testing import CliRunner
from shop_project import shop

from ctrlruntime.cli import ctrl
from ctrlruntime.explain import facts
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


@pytest.fixture
def operator() -> Iterator[Operator]:
    operator = Operator()
    thread = threading.Thread(target=operator.server.serve_forever, args=(0.01,))
    thread.start()
    yield operator
    operator.server.shutdown()
    operator.server.server_close()
    thread.join()


def why(*arguments, address):
    done = CliRunner().invoke(ctrl, ["why", *arguments, "--address", address])
    return done.exit_code, done.stdout, done.stderr


def test_the_answer_is_printed_as_lines(operator):
    code, out, err = why("Web", "ns/a", address=operator.address)

    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "Web ns/a  (controller web; version 7 in the cache)"


def test_the_question_carries_kind_namespace_name_and_controller(operator):
    why("webs.example.com", "n&s/a b", "--controller", "w", address=operator.address)

    (path,) = operator.asked
    assert urlsplit(path).path == "/debug/ctrlruntime/why"
    query = parse_qs(urlsplit(path).query)
    assert query == {"kind": ["webs.example.com"], "namespace": ["n&s"], "name": ["a b"], "controller": ["w"]}


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
    operator.body = msgspec.json.encode(facts.Refusal(error="no controller reconciles 'Wob'; did you mean Web?"))

    assert why("Wob", "ns/a", address=operator.address) == (
        1,
        "",
        "error: no controller reconciles 'Wob'; did you mean Web?\n",
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
    assert "Start it with `ctrl run`, or pass --address" in nothing_runs.stderr
    assert "is not in a project" in no_project.stderr
    assert len((nothing_runs.stderr + no_project.stderr).splitlines()) == 2
