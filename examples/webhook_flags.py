"""The command line of the examples with webhooks: whether they are on, and where their certificate comes from."""

from __future__ import annotations

import argparse

import ctrlruntime as ctrl
from ctrlruntime.webhook.server import default_cert_dir


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--webhooks",
        choices=("development", "files", "off"),
        help="development: certificate and registration are made for you, for as long as the operator runs; files: the certificate is in "
        f"--webhook-cert-path, or {default_cert_dir()}; default: off with ENABLE_WEBHOOKS=false, development on the embedded server, else "
        "files when they are there, else off",
    )
    parser.add_argument(
        "--webhook-host",
        metavar="HOST",
        default="127.0.0.1",
        help="with development: how the API server reaches this machine (default: 127.0.0.1)",
    )


def webhook_options(flags: ctrl.Flags, *, is_embedded: bool) -> ctrl.webhook.WebhookOptions | None:
    """Return how webhooks are served; None when they are off."""
    match flags.args.webhooks or _mode(flags, is_embedded=is_embedded):
        case "development":
            return ctrl.webhook.WebhookOptions(
                port=0, development=ctrl.webhook.DevelopmentMode(host=flags.args.webhook_host)
            )
        case "files":
            return flags.webhook(ctrl.webhook.WebhookOptions())
        case _:
            ctrl.get_logger("demo").warning("webhooks are off", turn_on="run with --webhooks=development")
            return None


def _mode(flags: ctrl.Flags, *, is_embedded: bool) -> str:
    if flags.environ.get("ENABLE_WEBHOOKS", "").lower() == "false":
        return "off"  # what `ctrl run --webhooks off` says
    if flags.webhook_cert_path:
        return "files"
    if is_embedded:
        return "development"
    return "files" if (default_cert_dir() / ctrl.webhook.WebhookOptions().cert_name).exists() else "off"
