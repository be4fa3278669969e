"""Runs after the blocks of docs/how-to/manifests.md, in their namespace."""

from ctrlruntime.project import load, manifests

made = manifests(load("docs"))
(definition,) = made.definitions
(role,) = made.roles
assert definition["metadata"]["name"] == "websites.docs.example.com"
rules = {resource: rule["verbs"] for rule in role["rules"] for resource in rule["resources"]}
assert rules["services"] == ["create", "get"]
assert "delete" in rules["deployments"]
kept = manifests(load("docs"), namespaces=["shop", "blog"]).roles
assert [(each["kind"], each["metadata"].get("namespace", "")) for each in kept] == [
    ("ClusterRole", ""),
    ("Role", "blog"),
    ("Role", "shop"),
]
