"""What a role or a binding must look like; the same words on both servers."""

from __future__ import annotations

from typing import Any

import pytest
from identity_callers import GROUP, MERGE, RBAC, bound, rule

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NO_VERBS = ("rules[0].verbs", "Required value: verbs must contain at least one value")
NO_GROUPS = ("rules[0].apiGroups", "Required value: resource rules must supply at least one api group")
NO_RESOURCES = ("rules[0].resources", "Required value: resource rules must supply at least one resource")
NAMESPACED = ("rules[0].nonResourceURLs", 'Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs')
BOTH = (
    "rules[0].nonResourceURLs",
    'Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs',
)
SELECTOR_NEEDED = "Required value: at least one clusterRoleSelector required if aggregationRule is non-nil"
ROLES: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    ("roles", {"rules": [{}]}, [NO_VERBS, NO_GROUPS, NO_RESOURCES]),
    ("clusterroles", {"rules": [{}]}, [NO_VERBS, NO_GROUPS, NO_RESOURCES]),
    ("roles", {"rules": [{"verbs": ["get"], "apiGroups": [""]}]}, [NO_RESOURCES]),
    ("roles", {"rules": [{"verbs": ["get"], "resources": ["pods"]}]}, [NO_GROUPS]),
    ("roles", {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}, [NAMESPACED]),
    ("clusterroles", {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}, []),
    ("clusterroles", {"rules": [rule(["get"], nonResourceURLs=["/x"])]}, [BOTH]),
    (
        "roles",
        {"rules": [{"verbs": [], "nonResourceURLs": ["/x"], "resourceNames": ["q"]}]},
        [NO_VERBS, NAMESPACED, BOTH],
    ),
    ("roles", {"rules": [rule([""], [""], [""])]}, []),
    ("roles", {"rules": []}, []),
    ("clusterroles", {"aggregationRule": {}}, [("aggregationRule.clusterRoleSelectors", SELECTOR_NEEDED)]),
    ("clusterroles", {"aggregationRule": {"clusterRoleSelectors": [{}]}}, []),
    ("clusterroles", {"metadata": {"name": "a/b"}}, [("metadata.name", "Invalid value: \"a/b\": may not contain '/'")]),
    ("roles", {"metadata": {"name": ".."}}, [("metadata.name", "Invalid value: \"..\": may not be '..'")]),
    ("roles", {"metadata": {"name": "A B"}}, []),
]
KINDS = 'Unsupported value: "Foo": supported values: "ServiceAccount", "User", "Group"'
VIEW = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "view"}
OF_RBAC = f'supported values: "{GROUP}"'


def with_subject(**subject: str) -> dict[str, Any]:
    return {"roleRef": VIEW, "subjects": [subject]}


BINDINGS: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    (
        "rolebindings",
        {},
        [
            ("roleRef.kind", 'Unsupported value: "": supported values: "Role", "ClusterRole"'),
            ("roleRef.name", "Required value"),
        ],
    ),
    (
        "clusterrolebindings",
        {},
        [
            ("roleRef.kind", 'Unsupported value: "": supported values: "ClusterRole"'),
            ("roleRef.name", "Required value"),
        ],
    ),
    ("rolebindings", {"roleRef": {"kind": "ClusterRole", "name": "view"}}, []),
    (
        "rolebindings",
        {"roleRef": {**VIEW, "apiGroup": "x"}},
        [("roleRef.apiGroup", f'Unsupported value: "x": {OF_RBAC}')],
    ),
    (
        "clusterrolebindings",
        {"roleRef": {"kind": "Role", "name": "a/b"}},
        [
            ("roleRef.kind", 'Unsupported value: "Role": supported values: "ClusterRole"'),
            ("roleRef.name", "Invalid value: \"a/b\": may not contain '/'"),
        ],
    ),
    ("rolebindings", with_subject(kind="User"), [("subjects[0].name", "Required value")]),
    ("rolebindings", with_subject(kind="User", name="a"), []),
    ("rolebindings", with_subject(kind="Foo", name="a", apiGroup="zz"), [("subjects[0].kind", KINDS)]),
    ("rolebindings", with_subject(name="a"), [("subjects[0].kind", KINDS.replace("Foo", ""))]),
    (
        "rolebindings",
        with_subject(kind="Group", name="a", apiGroup="x"),
        [("subjects[0].apiGroup", f'Unsupported value: "x": {OF_RBAC}')],
    ),
    ("rolebindings", with_subject(kind="ServiceAccount", name="a"), []),
    (
        "clusterrolebindings",
        with_subject(kind="ServiceAccount"),
        [("subjects[0].name", "Required value"), ("subjects[0].namespace", "Required value")],
    ),
    (
        "rolebindings",
        with_subject(kind="ServiceAccount", name="A B", namespace="x"),
        [("subjects[0].name", f'Invalid value: "A B": {SUBDOMAIN}')],
    ),
    (
        "clusterrolebindings",
        with_subject(kind="ServiceAccount", name="a", namespace="x", apiGroup="y"),
        [("subjects[0].apiGroup", 'Unsupported value: "y": supported values: ""')],
    ),
]
KIND_OF = {
    "roles": "Role",
    "clusterroles": "ClusterRole",
    "rolebindings": "RoleBinding",
    "clusterrolebindings": "ClusterRoleBinding",
}


@pytest.mark.parametrize(("plural", "body", "causes"), [*ROLES, *BINDINGS])
def test_what_a_role_or_a_binding_must_look_like(admin, plural, body, causes):
    place = RBAC if plural.startswith("cluster") else f"{RBAC}/namespaces/default"
    document = {"metadata": {"name": "thing"}, **body}

    answer = admin.post(f"{place}/{plural}?dryRun=All", document)

    listed = [f"{field}: {message}" for field, message in causes]
    text = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
    said = f'{KIND_OF[plural]}.{GROUP} "{document["metadata"]["name"]}" is invalid: {text}'
    assert answer.outcome == (("Invalid", said) if causes else ("", ""))
    assert answer.causes == causes


def test_a_role_without_rules_shows_null(admin):
    made = admin.made(f"{RBAC}/clusterroles?dryRun=All", {"metadata": {"name": "r"}, "rules": []})

    assert made["rules"] is None


def test_a_binding_cannot_be_pointed_elsewhere(admin, namespace):
    place = f"{RBAC}/namespaces/{namespace}/rolebindings"
    admin.made(place, bound("b", VIEW, {"kind": "User", "name": "a"}))

    replaced = admin.ask("PUT", f"{place}/b", bound("b", {"kind": "Role", "name": "view"}))
    patched = admin.ask("PATCH", f"{place}/b", {"roleRef": {"name": "edit"}}, content_type=MERGE)
    subjects = admin.ask("PATCH", f"{place}/b", {"subjects": None}, content_type=MERGE)

    def said(kind: str, name: str) -> tuple[str, str]:
        ref = f'{{"APIGroup":"{GROUP}","Kind":"{kind}","Name":"{name}"}}'
        return "Invalid", f'RoleBinding.{GROUP} "b" is invalid: roleRef: Invalid value: {ref}: cannot change roleRef'

    assert replaced.outcome == said("Role", "view")
    assert patched.outcome == said("ClusterRole", "edit")
    assert subjects.reason == ""
