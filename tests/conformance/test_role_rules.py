"""The generator refuses the rules that both servers refuse, and no others."""

from __future__ import annotations

import itertools

from ctrlruntime.errors import APIStatusError, GenerateError
from ctrlruntime.generate.rbac import policy_rules, roles
from ctrlruntime.markers import RBACRule

RULES = [
    RBACRule(groups=groups, resources=resources, resource_names=names, urls=urls, verbs=verbs, namespace=namespace)
    for groups, resources, names, urls, verbs, namespace in itertools.product(
        [(), ("",), ("*",)],
        [(), ("pods",), ("*/scale",)],
        [(), ("a",)],
        [(), ("/metrics",), ("*",), ("metrics",)],
        [(), ("get",)],
        ["", "default"],
    )
]
PATH = "/apis/rbac.authorization.k8s.io/v1"


def is_generated(rule: RBACRule) -> bool:
    try:
        roles([rule])
    except GenerateError:
        return False
    return True


def test_what_is_generated_is_what_is_taken(server):
    def is_taken(rule: RBACRule) -> bool:
        path = f"{PATH}/namespaces/{rule.namespace}/roles" if rule.namespace else f"{PATH}/clusterroles"
        role = {"metadata": {"name": "rules"}, "rules": policy_rules([rule])}
        try:
            server.connection.request("POST", f"{path}?dryRun=All", role)
        except APIStatusError:
            return False
        return True

    assert [rule for rule in RULES if is_generated(rule)] == [rule for rule in RULES if is_taken(rule)]
