"""Events that the simulated controllers write about the objects they work on."""

from __future__ import annotations

import secrets
from typing import Literal

from ctrlruntime.apiserver.controllers.objects import Now, metadata, timestamp
from ctrlruntime.apiserver.interfaces import API
from ctrlruntime.errors import CtrlError
from ctrlruntime.log import get_logger
from ctrlruntime.schema.trees import Document

_log = get_logger("apiserver")


class Recorder:
    """Writes Events as one component; an event that cannot be written is logged and forgotten."""

    def __init__(self, component: str, now: Now, *, host: str = "") -> None:
        self._component = component
        self._host = host
        self._now = now

    async def normal(self, api: API, obj: Document, reason: str, message: str) -> None:
        await self._write(api, obj, "Normal", reason, message)

    async def warning(self, api: API, obj: Document, reason: str, message: str) -> None:
        await self._write(api, obj, "Warning", reason, message)

    async def _write(
        self, api: API, obj: Document, type_: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        about, moment = metadata(obj), timestamp(self._now())
        namespace = str(about.get("namespace") or "default")
        event: Document = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{about['name']}.{secrets.token_hex(8)}", "namespace": namespace},
            "involvedObject": {
                "kind": obj["kind"],
                "namespace": about.get("namespace", ""),
                "name": about["name"],
                "uid": about.get("uid", ""),
                "apiVersion": obj["apiVersion"],
                "resourceVersion": about.get("resourceVersion", ""),
            },
            "reason": reason,
            "message": message,
            "type": type_,
            "count": 1,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "source": {"component": self._component, **({"host": self._host} if self._host else {})},
            "reportingComponent": self._component,
            "reportingInstance": self._host,
        }
        try:
            await api.create("", "events", namespace, event)
        except CtrlError as error:
            _log.debug("event not written", reason=reason, name=about["name"], error=str(error))
