"""The scaffolded tests of webhooks, run by pytest as a user would."""

from __future__ import annotations

import subprocess
import sys

from ctrlruntime.project.scaffold import begin, new_project, with_api, with_webhook

EMPTY = "    if errors:\n"
STRICT = """    if not boat.spec.note:
        errors.append(ctrl.webhook.FieldError.required("spec.note", "a boat has a note"))
"""


def test_validators_pass_and_a_rejected_sample_is_named_with_the_reason(tmp_path):
    settings = new_project(tmp_path, domain="x.io", project_name="fleet")
    settings = with_api(settings, "crew", "v1", "Boat", controller=False).settings
    settings = with_webhook(settings, "crew", "v1", "Boat", validation=True, defaulting=True).settings
    begin(tmp_path, settings, warn=print)
    validator = tmp_path / "fleet/webhooks/v1/boat.py"
    validator.write_text(validator.read_text().replace(EMPTY, STRICT + EMPTY))

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "tests/test_boat_v1_webhook.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    lines = done.stdout.splitlines()
    assert lines[-1].startswith("1 failed, 2 passed")
    assert any(
        line.startswith("crew_v1_boat.yaml is rejected: admission webhook")
        and "spec.note: Required value: a boat has a note" in line
        for line in lines
    ), done.stdout
