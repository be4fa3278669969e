"""TTL cleaner: the operator deletes each ConfigMap whose annotation `cookbook.example.com/ttl` has expired.

Use it for objects of previews and test runs. The annotation is a duration such as `30m`, and counts from the creation of the ConfigMap.

- The annotation and the creation time are metadata. So the operator caches only metadata, and no data of any ConfigMap is in its memory.
- `requeue_after` waits until the time has come. A change of the annotation reconciles earlier, and the new duration counts.
- The delete has the UID and the resource version as preconditions. A new ConfigMap of the same name stays, and so does one that has just
  got a longer duration.
- An invalid annotation is an Event on the ConfigMap, which its author sees. A `TerminalError` is not retried before the next change.

Shows: `only_metadata`, a predicate on annotations, `Duration`, `requeue_after`, delete preconditions, Events, `TerminalError`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

import ctrlruntime as ctrl
from ctrlruntime.api import core
from examples.cookbook import running

TTL = "cookbook.example.com/ttl"
ConfigMapMetadata = ctrl.PartialObjectMetadata.of(core.ConfigMap)


@ctrl.rbac(groups="", resources="configmaps", verbs="delete")
class TTLReconciler:
    def __init__(self, mgr: ctrl.Manager, now: Callable[[], datetime]) -> None:
        self.client = mgr.client
        self.recorder = mgr.event_recorder("ttl-cleaner")
        self.now = now

    async def reconcile(self, request: ctrl.Request) -> ctrl.Result | None:
        config = await self.client.get_or_none(ConfigMapMetadata, request)
        if config is None or config.metadata.deletion_timestamp is not None or not has_ttl(config):
            return None
        try:
            left = time_left(config, self.now())
        except ValueError as error:
            self.recorder.event(config, type="Warning", reason="InvalidTTL", action="Expire", note=f"{TTL}: {error}")
            raise ctrl.TerminalError(f"{TTL}: {error}") from error
        if left > timedelta():
            return ctrl.Result(requeue_after=left.total_seconds(), reason="the end of the TTL")
        with suppress(ctrl.NotFound):
            uid, version = config.metadata.uid, config.metadata.resource_version
            await self.client.delete(config, uid=uid, resource_version=version)
        return None


def has_ttl(config: ctrl.PartialObjectMetadata) -> bool:
    return TTL in config.metadata.annotations


def time_left(config: ctrl.PartialObjectMetadata, now: datetime) -> timedelta:
    """Return the rest of the TTL. Raises: ValueError if it is not a duration above zero."""
    ttl = ctrl.Duration.parse(config.metadata.annotations[TTL])
    if ttl <= timedelta():
        raise ValueError(f"{ttl} is not above zero")
    return ttl - (now - (config.metadata.creation_timestamp or now))


def setup(mgr: ctrl.Manager, now: Callable[[], datetime] = ctrl.Time.now) -> None:
    """Add the controller to a manager. `ctrl manifests` calls this too."""
    builder = ctrl.new_controller_managed_by(mgr).named("ttl")
    builder.for_(ConfigMapMetadata, predicates=[lambda event: TTL in event.annotations])
    builder.complete(TTLReconciler(mgr, now))


SAMPLE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: preview, namespace: default, annotations: {cookbook.example.com/ttl: 5s}}
"""


def main() -> None:
    running.run(setup, sample=SAMPLE, shows="configmaps")


if __name__ == "__main__":
    main()
