"""Manifests checked in memory: what kube-apiserver would say, by file, object and field."""

from __future__ import annotations

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.project.checking import check

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: carts.webapp.x.io}
spec:
  group: webapp.x.io
  names: {kind: Cart, listKind: CartList, plural: carts, singular: cart}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, maximum: 9}
              least: {type: integer}
            x-kubernetes-validations:
            - rule: "!has(self.least) || self.least <= self.size"
              message: least is above size
"""
CART = "{apiVersion: webapp.x.io/v1, kind: Cart, metadata: {name: mine}, spec: {%s}}"


def said(*texts: str) -> list[str]:
    return [str(problem) for problem in check([("a.yaml", text) for text in texts]).problems]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, dta: {}}", "ConfigMap/a: dta: unknown field"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: A_b}}", "ConfigMap/A_b: metadata.name: Invalid value"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {}}", "ConfigMap: metadata.name: Required value"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: 1}}", "ConfigMap/a: ConfigMap in version"),
        (
            "{apiVersion: v1, kind: ConfigMp, metadata: {name: a}}",
            "ConfigMp/a: v1 has no kind ConfigMp in Kubernetes 1.36",
        ),
        ("{apiVersion: policy/v1beta1, kind: PodDisruptionBudget}", "policy/v1beta1 has no kind PodDisruptionBudget"),
        ("{kind: ConfigMap}", "is not an object: apiVersion or kind is missing"),
        ("- a", "is not an object"),
        (
            "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 70000, targetPort: 80}]}}",
            "Service/a: spec.ports[0].port: Invalid value: 70000",
        ),
    ],
)
def test_a_problem_names_file_object_and_field(text, problem):
    (found,) = said(text)

    assert found.startswith("a.yaml: ")
    assert problem in found


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("size: 10", "spec.size: Invalid value: 10"),
        ("least: 1", "spec.size: Required value"),
        ("size: 1, least: 2", "spec: Invalid value: least is above size"),
        ("size: 1, sice: 2", "spec.sice: unknown field"),
        ("size: many", "spec.size: Invalid value"),
    ],
)
def test_objects_of_a_definition_that_comes_later_are_checked_by_it(spec, problem):
    (found,) = said(CART % spec, DEFINITION)

    assert f"Cart/mine: {problem}" in found


def test_what_is_right_is_counted_lists_opened():
    items = "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, metadata: {name: a}}, %s]}"

    found = check([("a.yaml", DEFINITION), ("b.yaml", items % (CART % "size: 1"))])

    assert (found.objects, found.problems, found.skipped) == (3, [], [])


def test_several_problems_of_an_object_are_several():
    deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replica: 1}}"

    assert [line.split(": ")[2] for line in said(deployment)] == [
        "spec.selector",
        "spec.template.metadata.labels",
        "spec.template.spec.containers",
        "spec.replica",
    ]


def test_a_definition_that_is_wrong_serves_nothing():
    wrong = DEFINITION.replace("storage: true", "storage: false")

    found = check([("a.yaml", f"{wrong}\n---\n{CART % 'size: 1'}")])

    (problem,) = found.problems
    assert (problem.object, problem.path) == ("CustomResourceDefinition/carts.webapp.x.io", "spec.versions")
    assert "must have exactly one version marked as storage version" in problem.text
    assert [each.object for each in found.skipped] == ["Cart/mine"]


def test_an_object_given_twice_is_a_problem_but_not_in_two_namespaces():
    twice = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
    elsewhere = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}"

    assert said(twice, elsewhere) == []
    assert said(twice, twice) == ["a.yaml: ConfigMap/a: is already in a.yaml"]


def test_an_object_given_twice_in_different_folders_is_no_problem():
    twice = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
    wrong = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, dta: {}}"

    found = check([("one/a.yaml", twice), ("two/a.yaml", wrong)])

    assert [str(each) for each in found.problems] == ["two/a.yaml: ConfigMap/a: dta: unknown field"]


def test_kinds_of_others_are_named_as_skipped():
    issuer = "{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: a}}"

    found = check(
        [
            ("a.yaml", issuer),
            ("b.yaml", "{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization}"),
            ("c.yaml", "{apiVersion: builtin, kind: PatchTransformer}"),
        ]
    )

    assert (found.objects, found.problems) == (0, [])
    assert [str(each) for each in found.skipped] == [
        "a.yaml: Issuer/a: cert-manager.io/v1 is unknown. Add its CRD to the files",
        "b.yaml: Kustomization: kustomize.config.k8s.io/v1beta1 is a kustomize file. Print its objects with `ctrl render`",
        "c.yaml: PatchTransformer: builtin is a kustomize file. Print its objects with `ctrl render`",
    ]


def test_what_is_no_yaml_is_refused():
    with pytest.raises(ConfigError, match=r"a\.yaml"):
        check([("a.yaml", "a: [")])
