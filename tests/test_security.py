"""SECURITY.md names what there is, and the release workflow keeps those apart who may sign from the code of the repository."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
STEPS = {name: job["steps"] for name, job in WORKFLOW["jobs"].items()}


def test_every_name_of_the_package_in_the_threat_model_exists():
    names = set(re.findall(r"`(ctrlruntime(?:\.\w+)+)`", (ROOT / "SECURITY.md").read_text()))

    assert "ctrlruntime.webhook.admission.BODY_LIMIT" in names
    for name in names:
        pkgutil.resolve_name(name)


@pytest.mark.parametrize("name", STEPS)
def test_a_job_may_nothing_it_does_not_say_and_pins_its_actions(name):
    assert WORKFLOW["permissions"] == {}
    assert WORKFLOW["jobs"][name]["permissions"]
    uses = [step["uses"] for step in STEPS[name] if "uses" in step]
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each) for each in uses)


def test_no_job_that_may_write_or_sign_runs_code_of_the_repository():
    for name, job in WORKFLOW["jobs"].items():
        if job["permissions"] == {"contents": "read"}:
            continue
        assert job["environment"] == "release", name
        assert not [step for step in STEPS[name] if "checkout" in step.get("uses", "")], name
        assert not [step for step in STEPS[name] if re.search(r"\b(pip|python)\b", step.get("run", ""))], name


def test_a_release_is_attested_with_an_sbom_signed_and_published_without_a_token():
    uses = {
        step["uses"].partition("@")[0]: step.get("with", {})
        for steps in STEPS.values()
        for step in steps
        if "uses" in step
    }

    assert uses["actions/attest-build-provenance"]["subject-path"] == "dist/*"
    assert uses["actions/attest"]["sbom-path"] == "sbom/ctrlruntime.cdx.json"
    assert "dist/*.whl" in uses["sigstore/gh-action-sigstore-python"]["inputs"]
    assert "password" not in uses["pypa/gh-action-pypi-publish"]
    assert WORKFLOW["jobs"]["publish"]["needs"] == "sign"


def test_what_builds_a_release_is_installed_by_hash():
    (install,) = (step["run"] for step in STEPS["build"] if "release-requirements" in step.get("run", ""))
    assert "--require-hashes" in install

    wanted = (ROOT / ".github/release-requirements.in").read_text().splitlines()
    locked = re.findall(
        r"(?m)^([\w.-]+)==[\w.]+.*(?:\n +--hash=sha256:[0-9a-f]{64}.*)+",
        (ROOT / ".github/release-requirements.txt").read_text(),
    )
    assert {line for line in wanted if not line.startswith("#")} <= set(locked)
