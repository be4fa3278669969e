"""The twins of the cases that need options, types of Kubernetes or several versions."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.api import apps, autoscaling, batch, core, meta, networking, rbac
from ctrlruntime.markers import ListMap


class FloatCase(ctrl.Object, group="floats.example.com", version="v1"):
    """FloatCase has floats."""

    ratio: float = Field(ge=0.5, le=1234567.25, multiple_of=0.25)
    factor: float = 1.5
    wide: float = Field(0.0, ge=0.000001, le=1e23)


class ShortCase(ctrl.Object, group="short.example.com", version="v1"):
    """ShortCase has descriptions that are cut. This is the second sentence, which is too long."""

    words: str = Field(description="One two three four five six seven eight nine ten eleven twelve thirteen")
    word: str = Field(description="Onetwothreefourfivesixseveneightnineteneleventwelvethirteenfourteen")
    fits: str = Field(description="Fits.")
    bang: str = Field(description="Ends here! and then it goes on and on and on")


class Color(StrEnum):
    """Color is one of a few."""

    RED = "red"
    BLUE = "blue"
    GREEN = "green"


class SortedCase(ctrl.Object, group="sorted.example.com", version="v1"):
    """SortedCase has an enum that is sorted."""

    color: Color


class BuiltIn(ctrl.Object, group="builtin.example.com", version="v1"):
    pass


class ContainersCase(BuiltIn):
    containers: Annotated[list[core.Container], ListMap("name")] = Field(default_factory=list)


class PodTemplateCase(BuiltIn):
    template: core.PodTemplateSpec


class SelectorCase(BuiltIn):
    selector: meta.LabelSelector
    others: meta.LabelSelector | None = None


class ConditionsCase(BuiltIn):
    conditions: Annotated[list[meta.Condition], ListMap("type")] = Field(default_factory=list)


class ResourcesCase(BuiltIn):
    resources: core.ResourceRequirements = Field(default_factory=core.ResourceRequirements)


class ReferencesCase(BuiltIn):
    local: core.LocalObjectReference
    object: core.ObjectReference
    key: core.SecretKeySelector
    typed: core.TypedLocalObjectReference
    env: list[core.EnvFromSource]
    owner: meta.OwnerReference


class VolumesCase(BuiltIn):
    claims: list[core.PersistentVolumeClaim] = Field(default_factory=list)
    volumes: list[core.Volume] = Field(default_factory=list)


class MetaCase(BuiltIn):
    template: meta.ObjectMeta


class WorkloadsCase(BuiltIn):
    service: core.ServiceSpec
    strategy: apps.DeploymentStrategy
    ingress: networking.IngressSpec
    policy: networking.NetworkPolicySpec
    autoscaler: autoscaling.HorizontalPodAutoscalerSpec
    rules: list[rbac.PolicyRule]
    job: batch.PodFailurePolicy


class VersionedCase(
    ctrl.Object, group="versions.example.com", version="v1", kind="VersionedCase", short_names=["vc"], storage=True
):
    """VersionedCase has several versions; this is v1."""

    new: str
    status: str = ""


class VersionedCaseAlpha(
    ctrl.Object,
    group="versions.example.com",
    version="v1alpha1",
    kind="VersionedCase",
    short_names=["vc"],
    served=False,
    deprecated="use v1",
):
    """VersionedCase has several versions; this is v1alpha1."""

    old: str


class VersionedCaseBeta(
    ctrl.Object,
    group="versions.example.com",
    version="v1beta1",
    kind="VersionedCase",
    short_names=["vc"],
    deprecated=True,
):
    """VersionedCase has several versions; this is v1beta1."""

    old: str
    new: str = ""


class VersionedCaseNext(
    ctrl.Object, group="versions.example.com", version="v2", kind="VersionedCase", short_names=["vc"], skip=True
):
    """VersionedCase has several versions; this is v2."""

    newer: str
