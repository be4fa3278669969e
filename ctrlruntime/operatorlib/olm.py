"""Reports the conditions of the operator to the Operator Lifecycle Manager, in its OperatorCondition.

OLM creates one OperatorCondition (operators.coreos.com/v2) for each operator that it installs, and sets its name in
OPERATOR_CONDITION_NAME. The operator writes `spec.conditions`, of which OLM uses `Upgradeable`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import Field

from ctrlruntime.api.meta.v1 import Condition
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.client.interfaces import Client
from ctrlruntime.conditions import ConditionStatus, find_condition, set_condition
from ctrlruntime.errors import ConfigError, Conflict, CtrlError
from ctrlruntime.leaderelection.lease import NAMESPACE_FILE

__all__ = [
    "ConditionNotSetError",
    "OperatorCondition",
    "OperatorConditionFactory",
    "OperatorConditionSpec",
    "OperatorConditionStatus",
    "ReportedCondition",
]

NAME_VARIABLE: Final = "OPERATOR_CONDITION_NAME"
_ATTEMPTS: Final = 5


class ConditionNotSetError(CtrlError):
    """The operator has not reported this condition yet."""


class OperatorConditionSpec(Model):
    service_accounts: list[str] = Field(
        default_factory=list[str], description="ServiceAccounts that may report conditions."
    )
    deployments: list[str] = Field(
        default_factory=list[str], description="Deployments that get the name of this object."
    )
    conditions: list[Condition] = Field(
        default_factory=list[Condition], description="What the operator says of itself."
    )
    overrides: list[Condition] = Field(
        default_factory=list[Condition], description="What an administrator says in its place."
    )


class OperatorConditionStatus(Model):
    conditions: list[Condition] = Field(default_factory=list[Condition], description="What OLM goes by.")


class OperatorCondition(
    Object,
    group="operators.coreos.com",
    version="v2",
    plural="operatorconditions",
    short_names=["condition"],
    categories=["olm"],
):
    """The state of an operator for OLM.

    It has the name of the ClusterServiceVersion. Other fields are kept.
    """

    spec: OperatorConditionSpec = Field(default_factory=OperatorConditionSpec)
    status: OperatorConditionStatus | None = None


class OperatorConditionFactory:
    """Creates the conditions of the operator in this process.

    It reads live, and needs get and update of this one object, which OLM allows. Raises: ConfigError outside OLM (without
    OPERATOR_CONDITION_NAME), or without a namespace.
    """

    def __init__(
        self,
        client: Client,
        *,
        environ: Mapping[str, str] = os.environ,
        namespace_file: Path = NAMESPACE_FILE,
    ) -> None:
        name = environ.get(NAME_VARIABLE, "")
        if not name:
            raise ConfigError(f"{NAME_VARIABLE} is not set: this operator was not installed by OLM")
        client.scheme.register(OperatorCondition)
        self._client = client
        self.key = NamespacedName(_namespace(environ, namespace_file), name)

    def condition(self, type: str) -> ReportedCondition:
        """Return the condition of a type, such as `Upgradeable`. Sends no request."""
        return ReportedCondition(self._client, self.key, type)


class ReportedCondition:
    """One condition of the OperatorCondition."""

    def __init__(self, client: Client, key: NamespacedName, type: str) -> None:
        self._client = client
        self._key = key
        self.type = type

    async def get(self) -> Condition:
        """Return the reported condition.

        Raises: ConditionNotSetError, NotFound if OLM has deleted the object.
        """
        found = find_condition((await self._read()).spec.conditions, self.type)
        if found is None:
            raise ConditionNotSetError(f"OperatorCondition {self._key} has no condition {self.type} yet")
        return found

    async def set(self, status: ConditionStatus | bool, *, reason: str, message: str = "") -> None:
        """Report the condition. An unchanged condition is not written.

        `reason` is one word in CamelCase. Raises: ValueError as `set_condition`, NotFound, Conflict if other clients write repeatedly.
        """
        for attempt in range(_ATTEMPTS):
            found = await self._read()
            if not set_condition(found.spec.conditions, self.type, status, reason=reason, message=message):
                return
            try:
                await self._client.update(found)
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return

    async def _read(self) -> OperatorCondition:
        return await self._client.api_reader.get(OperatorCondition, self._key)


def _namespace(environ: Mapping[str, str], file: Path) -> str:
    if environ.get("POD_NAMESPACE"):
        return environ["POD_NAMESPACE"]
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(
            f"the namespace of this operator is unknown: POD_NAMESPACE is not set and {file} cannot be read ({error.strerror})"
        ) from error
