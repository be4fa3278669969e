"""The webhooks: set the hash of a SidecarSet and validate it; add the containers of matching sets to a Pod."""

from __future__ import annotations

import json

import ctrlruntime as ctrl
from ctrlruntime.api import core
from ctrlruntime.selector import LabelSelector
from examples.sidecarset.api import HASH, SidecarSet, hash_of, selector_of

INJECTED = core.EnvVar(name="IS_INJECTED", value="true")

POD_PATH = "/mutate-sidecar-pod"
POD_RULE = ctrl.webhook.WebhookRule(
    mutating=True,
    name="msidecar-pod.kb.io",
    groups=[""],
    versions=["v1"],
    resources=["pods"],
    operations=["CREATE"],  # the containers of a Pod cannot be changed later
    failure_policy="Ignore",  # while the operator is down, Pods get no sidecars; else its own Pods could not start
)


def register_webhooks(mgr: ctrl.Manager) -> None:
    (
        ctrl.new_webhook_managed_by(mgr)
        .for_(SidecarSet)
        .with_defaulter(SidecarSetDefaulter())
        .with_validator(SidecarSetValidator(), operations=("CREATE", "UPDATE"))
        .complete()
    )
    injector = ctrl.webhook.Admission(SidecarInjector(mgr.client), cached_kinds=[SidecarSet])
    mgr.webhook_server.register(POD_PATH, injector, webhook=POD_RULE)


class SidecarSetDefaulter:
    async def default(self, sidecar_set: SidecarSet) -> None:
        sidecar_set.metadata.annotations[HASH] = hash_of(sidecar_set)


class SidecarSetValidator:
    async def validate_create(self, sidecar_set: SidecarSet) -> None:
        validate(sidecar_set)

    async def validate_update(self, _old: SidecarSet, new: SidecarSet) -> None:
        validate(new)

    async def validate_delete(self, sidecar_set: SidecarSet) -> None:
        """Allow every deletion. Pods keep their containers."""


def validate(sidecar_set: SidecarSet) -> None:
    """Validate a set. Raises: Invalid with an error for each invalid field."""
    errors: list[ctrl.webhook.FieldError] = []
    selector = sidecar_set.spec.selector
    if selector is None or not selector.to_dict():
        errors.append(ctrl.webhook.FieldError.required("spec.selector", "set the Pods that get the containers"))
    else:
        try:
            selector_of(sidecar_set)
        except ValueError as error:
            errors.append(ctrl.webhook.FieldError.invalid("spec.selector", selector, str(error)))
    if errors:
        raise ctrl.webhook.invalid(SidecarSet, sidecar_set.metadata.name, errors)


class SidecarInjector:
    """Handles raw requests for Pods; `ctrl.webhook.Admission` passes them on."""

    def __init__(self, client: ctrl.Client) -> None:
        self.client = client
        self.log = ctrl.get_logger("injector")

    async def handle(self, request: ctrl.webhook.AdmissionRequest) -> ctrl.webhook.AdmissionResponse:
        pod = request.decode(core.Pod)
        sets = [
            each for each in await self.client.list(SidecarSet) if self.selector_of(each).matches(pod.metadata.labels)
        ]
        if not sets:
            return ctrl.webhook.allowed("no SidecarSet selects the Pod")
        for sidecar_set in sorted(sets, key=lambda each: each.metadata.name):
            inject(sidecar_set, pod)
        pod.metadata.annotations[HASH] = json.dumps(
            {each.metadata.name: hash_of(each) for each in sets}, sort_keys=True
        )
        return ctrl.webhook.patch_response(request, pod)

    def selector_of(self, sidecar_set: SidecarSet) -> LabelSelector:
        try:
            return selector_of(sidecar_set)
        except ValueError as error:  # stored without the validator; inject the other sets
            self.log.warning("selector cannot be parsed", set=sidecar_set.metadata.name, error=str(error))
            return ctrl.selector.NOTHING


def inject(sidecar_set: SidecarSet, pod: core.Pod) -> None:
    """Append the containers of the set whose names the Pod does not have."""
    present = {container.name for container in pod.spec.containers}
    for container in sidecar_set.spec.containers:
        if container.name not in present:
            added = container.deep_copy()
            added.env = [*(variable for variable in added.env if variable.name != INJECTED.name), INJECTED.deep_copy()]
            pod.spec.containers.append(added)
