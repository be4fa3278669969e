"""Generated password: the operator creates a Secret with a random password for each Password, and never changes it.

The Secret has the name of the Password. If the Secret is deleted, a new one with a new password replaces it.

- The value is generated once. The reconciler creates a Secret only if it does not exist, and writes no existing one.
- The Secret is immutable, so that other clients cannot change the value either. To rotate it, delete the Secret.
- The operator needs only the metadata of Secrets. So no value of any Secret is in its cache.
- A Secret of this name that another owner created stays as it is. The condition reports it, and a retry could not help.
- `watches` enqueues the Password with the name of the Secret. So the deletion of a Secret with another owner is an event, too.

Shows: `secrets` with `string_data`, `watches_metadata`, `PartialObjectMetadata`, `has_owner`, conditions.
"""

from __future__ import annotations

import secrets
import string
from typing import Annotated

from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime import crd
from ctrlruntime.api import core, meta
from examples.cookbook import running

CHARACTERS = string.ascii_letters + string.digits
SecretMetadata = ctrl.PartialObjectMetadata.of(core.Secret)


class PasswordSpec(ctrl.Model):
    length: Annotated[ctrl.Int32, Field(ge=12, le=256, description="Counts for the next value that is generated.")] = 32


class PasswordStatus(ctrl.Model):
    conditions: Annotated[list[meta.Condition], crd.ListMap("type")] = Field(default_factory=list[meta.Condition])


@crd.printcolumn("Ready", '.status.conditions[?(@.type=="Ready")].status')
@crd.printcolumn("Reason", '.status.conditions[?(@.type=="Ready")].reason')
class Password(ctrl.Object, group="cookbook.example.com", version="v1"):
    """A random password in a Secret of the same name."""

    spec: PasswordSpec = Field(default_factory=PasswordSpec)
    status: PasswordStatus = Field(default_factory=PasswordStatus)


@ctrl.rbac(groups="cookbook.example.com", resources="passwords", verbs="get;list;watch")
@ctrl.rbac(groups="cookbook.example.com", resources="passwords/status;passwords/finalizers", verbs="update")
@ctrl.rbac(groups="", resources="secrets", verbs="create")
class PasswordReconciler:
    def __init__(self, client: ctrl.Client) -> None:
        self.client = client

    async def reconcile(self, request: ctrl.Request) -> None:
        password = await self.client.get_or_none(Password, request)
        if password is None or password.metadata.deletion_timestamp is not None:
            return
        secret = await self.client.get_or_none(SecretMetadata, request)
        if secret is None:
            await self.client.create(secret_for(password))
        is_own = secret is None or ctrl.controllerutil.has_owner(password, secret)
        await self.report(password, is_own=is_own)

    async def report(self, password: Password, *, is_own: bool) -> None:
        status = password.status.deep_copy()
        ctrl.set_condition(
            status.conditions,
            "Ready",
            is_own,
            reason="Generated" if is_own else "SecretExists",
            message="" if is_own else f"Secret {password.metadata.name} has another owner. Delete or rename it",
            observed_generation=password.metadata.generation,
        )
        if status != password.status:
            password.status = status
            await self.client.status.update(password)


def secret_for(password: Password) -> core.Secret:
    value = "".join(secrets.choice(CHARACTERS) for _ in range(password.spec.length))
    secret = core.Secret(
        metadata=meta.ObjectMeta(name=password.metadata.name, namespace=password.metadata.namespace),
        string_data={"password": value},
        immutable=True,
    )
    ctrl.set_controller_reference(password, secret)
    return secret


def setup(mgr: ctrl.Manager) -> None:
    """Add the controller to a manager. `ctrl manifests` calls this too."""
    builder = ctrl.new_controller_managed_by(mgr).for_(Password)
    builder.watches_metadata(core.Secret, ctrl.handler.EnqueueRequestForObject())
    builder.complete(PasswordReconciler(mgr.client))


SAMPLE = """
apiVersion: cookbook.example.com/v1
kind: Password
metadata: {name: database, namespace: default}
spec: {length: 24}
"""


def main() -> None:
    running.run(setup, Password, sample=SAMPLE, shows="passwords,secrets")


if __name__ == "__main__":
    main()
