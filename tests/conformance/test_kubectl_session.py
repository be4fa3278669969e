"""A whole session of kubectl, command by command, says the same on both servers.

The commands stand in `kubectl/session.txt`. What differs by nature (ages, uids, addresses, generated names) is replaced by its name; all
differences of the session are shown together.
"""

from __future__ import annotations

import difflib
import re
import secrets
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from test_kubectl_commands import serve_trinkets

from ctrlruntime.testing import Environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl in the PATH"),
]

FOLDER = Path(__file__).parent / "kubectl"
NATURE = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
    (r"\bkubectl\.kubernetes\.io/restartedAt: \S+", "restartedAt"),
    (r"\"?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)\"?", "TIME"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S* [+-]\d{4}( UTC)?", "TIME"),
    (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} [\d:]+ [+-]\d{4}", "TIME"),
    (r"\bresourceVersion: \"\d+\"", "resourceVersion: VERSION"),
    (r"\bResource Version: +\d+", "Resource Version: VERSION"),
    (r"Waiting for deployment .*\n", ""),  # how far a rollout was when it was looked at
    (r"\b(web|applied|once|single|nightly|kustom-generated)-[a-z0-9]{5,10}(-[a-z0-9]{5})?\b", r"\1-HASH"),
    (r"pod-template-hash[:=] ?\S+", "pod-template-hash=HASH"),
    (r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
    (r"(?<![\w.-])(\d+[smhd])+(?![\w-])", "AGE"),
    (r"<invalid>|<unknown>", "AGE"),
    (r"/tmp/(LIVE|MERGED)-\d+", r"\1"),
    (r"[ \t]+", " "),
)


def commands() -> list[str]:
    lines = (line.strip() for line in (FOLDER / "session.txt").read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


class Session:
    """kubectl in one namespace of one server; outputs are made comparable."""

    def __init__(self, server: Environment, namespace: str, cache: Path) -> None:
        self._namespace = namespace
        self._url = server.url
        self._base = [
            "kubectl",
            "--kubeconfig",
            str(server.kubeconfig_path),
            "--cache-dir",
            str(cache),
            "-n",
            namespace,
        ]

    def run(self, command: str) -> str:
        arguments = [word.replace("{ns}", self._namespace) for word in words(command)]
        done = subprocess.run(
            [*self._base, *arguments], cwd=FOLDER, capture_output=True, text=True, timeout=120, check=False
        )
        out = self._plain(done.stdout)
        if command == "api-versions":  # what other tests have installed
            own = (line for line in out.splitlines() if "." not in line or ".k8s.io/" in line)
            out = "\n".join(own)
        if command.startswith("explain") and "trinket" not in command:
            out = re.sub(r"DESCRIPTION:\n(?: .*\n?)+", "", out)  # the server's data has no prose on the built-in kinds
        if command.startswith("describe configmap"):  # kubectl walks a Go map: any order
            out = "\n".join(sorted(out.splitlines()))
        return f"exit {done.returncode}\n{out}\n{self._plain(done.stderr)}".strip()

    def _plain(self, text: str) -> str:
        text = text.replace(self._url, "URL").replace(self._namespace, "NS")
        for pattern, name in NATURE:
            text = re.sub(pattern, name, text)
        return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def words(command: str) -> list[str]:
    """Split at spaces; what a shell would need quotes for (JSON, cron schedules) stays one word."""
    if "--schedule=" in command:
        head, _, schedule = command.partition(" --schedule=")
        return [*head.split(), f"--schedule={schedule}"]
    head, flag, json = command.partition(" -p ")
    return [*shlex.split(head.replace("{{len_.items}}", "'{{len .items}}'")), *(["-p", json] if flag else [])]


@pytest.mark.usefixtures("_real_nodes")
def test_a_session_of_kubectl_says_the_same_on_both_servers(embedded_server, real_server, tmp_path):
    namespace = f"session-{secrets.token_hex(4)}"
    sessions: list[Session] = []
    for server in (embedded_server, real_server):
        server.connection.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        serve_trinkets(server)
        sessions.append(Session(server, namespace, tmp_path / server.backend))
    script = commands()
    assert len(script) >= 60
    differences: list[str] = []
    for command in script:
        embedded, real = (session.run(command) for session in sessions)
        if embedded != real:
            lines = difflib.unified_diff(real.splitlines(), embedded.splitlines(), "real", "embedded", lineterm="", n=1)
            differences.append(f"kubectl {command}\n" + "\n".join(lines))
    for server in (embedded_server, real_server):
        server.delete_namespace(namespace)
    assert not differences, f"{len(differences)} of {len(script)} commands differ:\n\n" + "\n\n".join(differences)
