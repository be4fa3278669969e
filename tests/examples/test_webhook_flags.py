"""Whether an example's webhooks are on, and where their certificate comes from."""

from __future__ import annotations

import argparse

import pytest

import ctrlruntime as ctrl
from examples import webhook_flags

pytestmark = pytest.mark.usefixtures("runs_main")


@pytest.fixture
def options(monkeypatch, tmp_path):
    """The options for a command line; certificates would be in `tmp_path`."""
    monkeypatch.setattr(webhook_flags, "default_cert_dir", lambda: tmp_path)

    def of(*arguments: str, is_embedded: bool = False) -> ctrl.webhook.WebhookOptions | None:
        parser = argparse.ArgumentParser()
        webhook_flags.add_flags(parser)
        flags = ctrl.parse_flags(list(arguments), parser=parser)
        return webhook_flags.webhook_options(flags, is_embedded=is_embedded)

    return of


def test_on_the_embedded_server_everything_is_made_for_you(options):
    found = options(is_embedded=True)

    assert found.development == ctrl.webhook.DevelopmentMode()
    assert found.port == 0


def test_on_a_cluster_webhooks_are_off_until_there_is_a_certificate(options, tmp_path):
    assert options() is None

    (tmp_path / "tls.crt").touch()
    assert options() == ctrl.webhook.WebhookOptions()


def test_the_environment_turns_them_off_unless_something_else_is_said(options, tmp_path, monkeypatch):
    (tmp_path / "tls.crt").touch()
    monkeypatch.setenv("ENABLE_WEBHOOKS", "false")

    assert options() is None
    assert options("--webhook-cert-path", str(tmp_path)) is None
    assert options("--webhooks", "files") == ctrl.webhook.WebhookOptions()


def test_a_folder_with_a_certificate_is_used_and_an_empty_one_is_none(options, tmp_path):
    assert options("--webhook-cert-path", str(tmp_path)) == ctrl.webhook.WebhookOptions(cert_dir=str(tmp_path))
    assert options("--webhook-cert-path=") is None


def test_what_is_said_wins(options, tmp_path):
    (tmp_path / "tls.crt").touch()

    assert options("--webhooks", "off", is_embedded=True) is None
    assert options("--webhooks", "files", is_embedded=True) == ctrl.webhook.WebhookOptions()
    assert options("--webhooks=development", "--webhook-host=10.0.0.1").development.host == "10.0.0.1"
