"""The scaffolded tests of webhooks, run by pytest as a user would."""

from __future__ import annotations

import os
import sys

from ctrlruntime.project.scaffold import begin, new_project, with_api, with_webhook

EMPTY = "    if errors:\n"
STRICT = """    if not boat.spec.note:
        errors.append(ctrl.webhook.FieldError.required("spec.note", "a boat has a note"))
"""


def test_validators_pass_and_a_rejected_sample_is_named_with_the_reason(tmp_path, forked_pytest, manifests_in_forks):
    settings = new_project(tmp_path, domain="x.io", project_name="fleet")
    settings = with_api(settings, "crew", "v1", "Boat", controller=False).settings
    settings = with_webhook(settings, "crew", "v1", "Boat", validation=True, defaulting=True).settings
    begin(tmp_path, settings, warn=print)
    validator = tmp_path / "fleet/webhooks/v1/boat.py"
    validator.write_text(validator.read_text().replace(EMPTY, STRICT + EMPTY))

    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "tests/test_boat_v1_webhook.py"]
    done = forked_pytest.run(command, cwd=tmp_path, env=dict(os.environ))

    lines = done.stdout.splitlines()
    assert lines[-1].startswith("1 failed, 2 passed")
    assert any(
        line.startswith("crew_v1_boat.yaml is rejected: admission webhook")
        and "spec.note: Required value: a boat has a note" in line
        for line in lines
    ), done.stdout
