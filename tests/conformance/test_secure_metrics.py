"""Metrics over HTTPS, to callers that RBAC lets read them: ServiceAccounts with and without the ClusterRole, on both servers."""

from __future__ import annotations

import secrets
import ssl

import aiohttp
import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import authentication, core, meta, rbac
from ctrlruntime.certificates import make_authority
from ctrlruntime.testing import eventually

GROUP = "rbac.authorization.k8s.io"


@pytest.fixture
async def cluster(server):
    found = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
    yield found
    await found.close()


@pytest.fixture
async def cleanup(cluster):
    made = []
    yield made
    for each in reversed(made):
        await cluster.unfenced_client().delete(each)


@pytest.fixture
def account(cluster, namespace, cleanup):
    """Makes a ServiceAccount with a rule or without, and returns its token."""
    client = cluster.unfenced_client()

    async def make(rule: rbac.PolicyRule | None = None) -> str:
        name = f"account-{secrets.token_hex(3)}"
        where = meta.ObjectMeta(name=name, namespace=namespace)
        account = await client.create(core.ServiceAccount(metadata=where))
        if rule is not None:
            role = rbac.ClusterRole(metadata=meta.ObjectMeta(name=name), rules=[rule])
            binding = rbac.ClusterRoleBinding(
                metadata=meta.ObjectMeta(name=name),
                role_ref=rbac.RoleRef(api_group=GROUP, kind="ClusterRole", name=name),
                subjects=[rbac.Subject(kind="ServiceAccount", name=name, namespace=namespace)],
            )
            cleanup.extend([await client.create(role), await client.create(binding)])
        request = authentication.TokenRequest(spec=authentication.TokenRequestSpec(audiences=[]))
        answer = await client.subresource("token").create(account, request)
        return answer.status.token

    return make


READER = rbac.PolicyRule(non_resource_urls=["/metrics"], verbs=["get"])


def manager(config, secure=None):
    return ctrl.new_manager(
        config, metrics_bind_address="127.0.0.1:0", secure_metrics=secure or ctrl.metrics.SecureMetrics()
    )


async def get(mgr, token="", *, context=False, path="/metrics"):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"https://127.0.0.1:{mgr.metrics_address.port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=context) as answer:
        return answer.status, await answer.text()


async def test_only_who_may_read_the_metrics_reads_them(cluster, account):
    reader, other = await account(READER), await account()
    async with ctrl.running(manager(cluster.config)) as mgr:
        # A binding may take a moment to be seen, and a refusal holds for half a minute: that is asked of managers of their own.
        await eventually(lambda: is_bound(cluster.config, reader), timeout=LONGEST_WAIT)
        assert "controller_runtime" in (await get(mgr, reader))[1]
        status, text = await get(mgr, other)
        assert (status, text.startswith("system:serviceaccount:")) == (403, True)
        assert text.endswith(" may not get /metrics\n")
        assert (await get(mgr))[0] == 401
        assert (await get(mgr, "nonsense"))[0] == 401


async def is_bound(config, token):
    async with ctrl.running(manager(config)) as other:
        return (await get(other, token))[0] == 200


async def test_an_operator_that_may_not_ask_lets_nobody_in(account, server, tmp_path, capsys):
    reader = await account(READER)
    (tmp_path / "config").write_text(server.add_user(f"user-{secrets.token_hex(3)}"))
    nobody = ctrl.get_config(str(tmp_path / "config"))
    async with ctrl.running(manager(nobody)) as mgr:
        assert await get(mgr, reader) == (500, "Authentication failed\n")

    assert "tokenreviews" in capsys.readouterr().err


async def test_the_certificate_of_the_options_is_shown(cluster, tmp_path):
    authority = make_authority("test")
    pair = authority.server(["127.0.0.1"])
    (tmp_path / "tls.crt").write_bytes(pair.certificate)
    (tmp_path / "tls.key").write_bytes(pair.key)
    context = ssl.create_default_context(cadata=authority.pem.decode())

    async with ctrl.running(manager(cluster.config, ctrl.metrics.SecureMetrics(cert_dir=tmp_path))) as mgr:
        assert (await get(mgr, context=context))[0] == 401
