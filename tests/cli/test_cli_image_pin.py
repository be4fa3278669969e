"""`ctrl image pin`: the base image of a Dockerfile with the digest its registry has for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl
from ctrlruntime.project.scaffold.files import scaffold_files
from ctrlruntime.project.settings import read_settings

PROJECT = '[tool.ctrlruntime]\nproject-name = "shop"\npackage = "shop"\ndomain = "x.io"\n'
DIGESTS = {"3.13": f"sha256:{'ab' * 32}", "3.14": f"sha256:{'cd' * 32}"}


def pin(*arguments: str):
    return CliRunner().invoke(ctrl, ["image", "pin", *arguments])


@pytest.fixture
def dockerfile(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "Dockerfile"


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    """Host and port of a registry that has python:3.13 and python:3.14."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            digest = DIGESTS.get(self.path.removeprefix("/v2/python/manifests/"))
            self.send_response(200 if digest else 404)
            self.send_header("Docker-Content-Digest", digest or "")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD  # noqa: N815 - the name http.server calls

        def log_message(self, *_):
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_digest_stands_behind_the_tag_and_is_renewed_by_it(dockerfile, registry):
    text = "# mine\nARG BASE={}\nFROM ${{BASE}} AS build\nFROM ${{BASE}}\n"
    dockerfile.write_text(text.format(f"{registry}/python:3.13"))

    first, again = pin(), pin()
    pinned = dockerfile.read_text()
    dockerfile.write_text(pinned.replace(":3.13@", ":3.14@"))
    renewed = pin()

    base = f"{registry}/python:3.13@{DIGESTS['3.13']}"
    assert (first.exit_code, first.output) == (0, f"changed Dockerfile: BASE is {base}\n")
    assert pinned == text.format(base)
    assert (again.exit_code, again.output) == (0, "Dockerfile: up to date\n")
    assert renewed.exit_code == 0
    assert dockerfile.read_text() == text.format(f"{registry}/python:3.14@{DIGESTS['3.14']}")


def test_the_scaffolded_dockerfile_can_be_pinned_without_a_registry(dockerfile):
    text = scaffold_files(read_settings(dockerfile.parent))["Dockerfile"]
    dockerfile.write_text(text)

    done = pin("--digest", DIGESTS["3.13"])

    assert done.exit_code == 0
    changed = [line for line in dockerfile.read_text().splitlines() if line not in text.splitlines()]
    assert len(changed) == 1
    assert changed[0].startswith("ARG BASE=python:3.")
    assert changed[0].endswith(f"@{DIGESTS['3.13']}")


def test_a_tag_that_is_not_there_changes_nothing(dockerfile, registry):
    dockerfile.write_text(f"ARG BASE={registry}/python:2.7\nFROM ${{BASE}}\n")

    done = pin()

    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {registry}/python:2.7: ")
    assert "@" not in dockerfile.read_text()


@pytest.mark.parametrize(("text", "lines"), [("FROM python:3.13\n", "no"), ("ARG BASE=a\nARG BASE=b\n", "2")])
def test_a_dockerfile_that_names_no_base_says_what_to_write(dockerfile, text, lines):
    dockerfile.write_text(text)

    done = pin("--digest", DIGESTS["3.13"])

    assert done.exit_code == 1
    assert done.stderr.startswith(f"error: cannot pin the base image: the Dockerfile has {lines} lines ARG BASE=IMAGE")
    assert dockerfile.read_text() == text


def test_a_dockerfile_that_is_missing_is_one_line(dockerfile):
    done = pin("--digest", DIGESTS["3.13"])

    assert done.exit_code == 1
    assert done.stderr.startswith("error: cannot read Dockerfile")


@pytest.mark.parametrize("digest", ["sha256:ab", "latest", f"sha256:{'AB' * 32}", f"sha512:{'ab' * 32}"])
def test_what_is_no_digest_is_wrong_usage(dockerfile, digest):
    assert pin("--digest", digest).exit_code == 2
