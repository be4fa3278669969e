"""The project of docs/learn/cronjob.md on the real server: its own tests pass there. `scripts/check-docs` follows the page on the embedded one."""

from __future__ import annotations

import os
import re
import sys

from example_process import ROOT

PAGE = ROOT / "docs" / "learn" / "cronjob.md"
FILE = re.compile(r"^<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KIND = ("--group", "batch", "--version", "v1", "--kind", "CronJob")


def test_the_tests_of_the_project_pass_on_the_real_server(real_server, forks, forked_pytest, tmp_path):
    folder = tmp_path / "project"
    env = {**os.environ, "KUBECONFIG": str(real_server.kubeconfig_path)}

    def ctrl(*words: str) -> None:
        done = forks.run([sys.executable, "-m", "ctrlruntime", *words], cwd=folder, env=env)
        assert done.returncode == 0, done.stdout + done.stderr

    folder.mkdir()
    ctrl("init", "--domain", "tutorial.kubebuilder.io", "--project-name", "cronjob")
    ctrl("create", "api", *KIND)
    ctrl("create", "webhook", *KIND, "--defaulting", "--programmatic-validation")
    for name, text in FILE.findall(PAGE.read_text()):
        (folder / name).write_text(text)
    ctrl("manifests")

    options = [
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ]  # the fork has our plugins loaded
    command = [sys.executable, "-m", "pytest", *options, "--envtest-backend=existing"]
    done = forked_pytest.run(command, cwd=folder, env=env)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 passed" in done.stdout
