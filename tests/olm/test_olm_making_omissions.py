"""What is left out of objects that were given, because the Operator Lifecycle Manager brings it, is told in one line."""

from __future__ import annotations

from ctrlruntime.olm.making.omissions import omitted


def object_of(api_version: str, kind: str, name: str, **more: object) -> dict:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more}


def deployment_of(volumes: list[str], args: list[str], env: dict[str, str]) -> dict:
    container = {"name": "manager", "args": args, "env": [{"name": name, "value": env[name]} for name in env]}
    pod = {"containers": [container], "volumes": [{"name": name} for name in volumes]}
    return object_of("apps/v1", "Deployment", "shop", spec={"template": {"spec": pod}})


def csv_with(deployment: dict) -> dict:
    entry = {"name": deployment["metadata"]["name"], "spec": deployment["spec"]}
    return {"spec": {"install": {"spec": {"deployments": [entry]}}}}


def test_certificates_their_volumes_and_what_names_them_are_told():
    before = deployment_of(["certs", "data"], ["run", "--cert=/a"], {"CERT": "/a", "WATCH_NAMESPACE": "x", "MODE": "b"})
    after = deployment_of(["data"], ["run", "--cert="], {"CERT": "", "MODE": "b"})
    objects = [
        object_of("cert-manager.io/v1", "Certificate", "serving"),
        object_of("cert-manager.io/v1", "Issuer", "own"),
        object_of("v1", "Service", "hooks"),
        before,
    ]

    assert omitted(objects, csv_with(after)) == (
        "the Operator Lifecycle Manager creates the certificate of the webhooks, so cert-manager is not needed. "
        "Left out: Certificate/serving, Issuer/own, the volume certs of Deployment/shop. "
        "Changed: --cert=/a is now --cert=, the variable CERT"
    )


def test_where_nothing_was_left_out_nothing_is_said():
    same = deployment_of(["data"], ["run"], {"MODE": "b"})

    assert omitted([same, object_of("v1", "Service", "hooks")], csv_with(same)) == ""
