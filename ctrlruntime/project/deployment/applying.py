"""A rendered tree put into a cluster: checked, applied in an order that works, waited for, and pruned of what an earlier one left."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from ctrlruntime.api.object import Object, Unstructured
from ctrlruntime.client.interfaces import Client
from ctrlruntime.cluster import Cluster
from ctrlruntime.errors import APIStatusError, Conflict, CtrlError, NoMatchError, NotFound
from ctrlruntime.install import make_room, served_kinds
from ctrlruntime.project.deployment.applyset import OWNER, ApplySet, Scope
from ctrlruntime.project.deployment.objects import Document, Named, Outcome, Step, Tell, in_phases
from ctrlruntime.project.deployment.ownership import OWN_MANAGERS
from ctrlruntime.project.deployment.preparing import (
    Found,
    check_access,
    check_authorities,
    check_certificates,
    check_owners,
    find,
    is_embedded,
    is_trusted,
    settled,
)
from ctrlruntime.project.deployment.pruning import prune
from ctrlruntime.project.deployment.rollout import rollout_of

__all__ = ["DeployError", "Options", "deploy"]

_POLL: Final = 0.25  # seconds between looks at what is waited for


class DeployError(CtrlError):
    """A deployment did not finish; the message has its state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to deploy."""

    wait: float | None = 120.0
    """Seconds for each CRD to be served and each Deployment to be available; None does not wait for Deployments."""

    dry_run: bool = False
    """The API server validates everything and stores nothing."""

    force_conflicts: bool = False
    """Take fields over from other field managers, and objects from other deployments."""

    stuck_after: float = 15.0
    """Seconds until a stuck rollout is an error."""

    version: str = ""
    """Of this tool, for the record in the cluster."""

    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep)


async def deploy(
    cluster: Cluster, documents: Sequence[Document], *, name: str, namespace: str, options: Options, tell: Tell
) -> None:
    """Apply the documents as the set `name` in `namespace`, wait for them, and prune what the set had before.

    Raises: ConfigError for kinds the cluster lacks and objects of others, Forbidden, Conflict naming the other managers, DeployError
    when something is not served or available in time, APIStatusError, TransportError.
    """
    work = _Deployment(cluster, ApplySet(cluster.unfenced_client(), name, namespace, version=options.version), options)
    await work.run(documents, tell)


class _Deployment:
    """One run. Nothing is written before everything was checked."""

    def __init__(self, cluster: Cluster, ours: ApplySet, options: Options) -> None:
        self._cluster = cluster
        self._client: Client = cluster.unfenced_client()
        self._set = ours
        self._options = options
        self._found: Found = {}

    async def run(self, documents: Sequence[Document], tell: Tell) -> None:
        trees = await settled(
            self._client, documents, self._set.parent.namespace, lacks_pods=partial(is_embedded, self._cluster)
        )
        check_certificates(trees)
        webhooks = in_phases(trees).webhooks
        if webhooks and self._waits and await is_embedded(self._cluster):
            await check_authorities(self._client, webhooks)
        names = [Named.of(tree) for tree in trees]
        await check_access(self._client, [*names, self._set.parent])
        self._found = await find(self._client, names, whole=self._options.dry_run)
        if not self._options.force_conflicts:
            check_owners(self._found, self._set)
        for tree in trees:
            self._set.mark(tree)
        before = await self._set.read()
        scope = Scope.of(names)
        phases = in_phases(trees)

        await self._apply(phases.namespaces, tell)
        if not self._options.dry_run:
            await self._set.write(scope if before is None else scope | before)
        await self._make_room(phases.definitions)
        await self._apply(phases.definitions, tell)
        await self._wait_served(phases.definitions)
        await self._apply([*phases.rest, *phases.workloads], tell)
        await self._wait_available(phases.workloads, tell, webhooks=len(phases.webhooks))
        await self._apply(phases.webhooks, tell)
        await self._wait_trusted(phases.webhooks, tell)
        await self._apply(phases.custom, tell)
        if before is None:
            return
        kept = await prune(self._client, self._set, before, names, dry_run=self._options.dry_run, tell=tell)
        if not self._options.dry_run:
            await self._set.write(scope | Scope.of(kept))

    # Applying

    async def _make_room(self, definitions: Iterable[dict[str, Any]]) -> None:
        if self._options.dry_run:
            return
        for definition in definitions:
            if Named.of(definition) in self._found:
                take_from = None if self._options.force_conflicts else OWN_MANAGERS
                await make_room(self._client, definition, OWNER, take_from=take_from)

    async def _apply(self, trees: Iterable[dict[str, Any]], tell: Tell) -> None:
        for tree in trees:
            named = Named.of(tree)
            await self._wait_gone(named)
            tell(Step(await self._apply_one(named, tree), named))

    async def _apply_one(self, named: Named, tree: dict[str, Any]) -> Outcome:
        present = self._found.get(named)
        try:
            stored = await self._send(tree, force=self._options.force_conflicts)
        except Conflict as error:
            owners = {_manager(cause.message) for cause in error.causes}
            if not owners or not owners <= OWN_MANAGERS:
                raise Conflict(_conflict(named, error), status=error.status, code=error.code) from error
            stored = await self._send(tree, force=True)
        except (NoMatchError, NotFound):
            if self._options.dry_run:  # its definition, or its namespace, is not there yet
                return "created"
            raise
        except APIStatusError as error:
            raise type(error)(f"{named}: {error}", status=error.status, code=error.code) from error
        if present is None:
            return "created"
        if self._options.dry_run:
            return "unchanged" if _content(stored) == _content(present) else "configured"
        is_same = stored.metadata.resource_version == present.metadata.resource_version
        return "unchanged" if is_same else "configured"

    async def _send(self, tree: dict[str, Any], *, force: bool) -> Object:
        return await self._client.apply(
            Unstructured.from_dict(tree), field_owner=OWNER, force=force, dry_run=self._options.dry_run
        )

    # Waiting

    @property
    def _waits(self) -> bool:
        return not self._options.dry_run and self._options.wait is not None

    @contextlib.asynccontextmanager
    async def _in_time(self, complaint: str, rest: str = "") -> AsyncGenerator[None]:
        seconds = self._options.wait or Options().wait
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            raise DeployError(f"{complaint} after {seconds:g} s{rest}") from error

    async def _wait_gone(self, named: Named) -> None:
        """Wait out an object that is being deleted: what is written to it would go with it."""
        present = self._found.get(named)
        if present is None or present.metadata.deletion_timestamp is None or self._options.dry_run:
            return
        held = ", ".join(present.metadata.finalizers) or "its contents"
        async with self._in_time(f"{named} is still being deleted (held by {held})"):
            while await self._client.api_reader.get_or_none(named.metadata_class, named.key) is not None:
                await self._options.sleep(_POLL)
        del self._found[named]

    async def _wait_served(self, definitions: Sequence[Document]) -> None:
        if self._options.dry_run:
            return
        for definition in definitions:
            named = Named.of(definition)
            async with self._in_time(f"{named} was accepted, but is not served"):
                for kind in served_kinds(definition):
                    while not await self._is_served(named, kind):
                        await self._options.sleep(_POLL)

    async def _is_served(self, named: Named, kind: Any) -> bool:
        try:
            await self._client.mapper.resource_for(kind)
        except NoMatchError:
            definition = await self._client.api_reader.get(
                Unstructured.of(named.kind.api_version, named.kind.kind), named.key
            )
            for condition in definition.get_path("status", "conditions") or []:
                if condition["type"] == "NamesAccepted" and condition["status"] == "False":
                    raise DeployError(f"{named}: {condition.get('message') or condition.get('reason')}") from None
            return False
        return True

    async def _wait_available(self, workloads: Sequence[Document], tell: Tell, *, webhooks: int) -> None:
        if not self._waits:
            return
        for document in workloads:
            named = Named.of(document)
            if named.kind.kind == "Deployment":
                await self._follow(named, tell, _left_out(webhooks))

    async def _wait_trusted(self, webhooks: Sequence[Document], tell: Tell) -> None:
        """Wait for the CA bundle, which cert-manager's injector or the operator sets: webhook calls fail until then."""
        if not self._waits:
            return
        for document in webhooks:
            named = Named.of(document)
            if await self._is_trusted(named):
                continue
            tell(Step("waiting", named, "no CA bundle yet"))
            async with self._in_time(
                f"{named} has no CA bundle",
                ", so its calls fail. Check the log of the operator or of cert-manager's injector",
            ):
                while not await self._is_trusted(named):
                    await self._options.sleep(_POLL)
            tell(Step("ready", named, "CA bundle set"))

    async def _is_trusted(self, named: Named) -> bool:
        kind = Unstructured.of(named.kind.api_version, named.kind.kind)
        return is_trusted(await self._client.api_reader.get(kind, named.key))

    async def _follow(self, named: Named, tell: Tell, left_out: str) -> None:
        said, stuck_since = "", None
        clock = asyncio.get_running_loop().time
        start = clock()
        while True:
            state = await rollout_of(self._cluster, named.key)
            if state.is_done:
                tell(Step("ready", named, state.text))
                return
            if state.text != said:
                said = state.text
                tell(Step("waiting", named, said))
            stuck_since = (stuck_since or clock()) if state.is_stuck else None
            seconds = clock() - start
            is_late = seconds >= (self._options.wait or 0)
            if is_late or (stuck_since is not None and clock() - stuck_since >= self._options.stuck_after):
                lines = "".join(f"\n  {line}" for line in state.log)
                raise DeployError(f"{named} is not available after {seconds:.0f} s: {said}{left_out}{lines}")
            await self._options.sleep(_POLL)


def _left_out(webhooks: int) -> str:
    return "; the webhook configurations were not applied" if webhooks else ""


def _manager(text: str) -> str:
    """Return the manager in `conflict with "NAME" using apps/v1`."""
    parts = text.split('"')
    return parts[1] if len(parts) > 2 else text


def _conflict(named: Named, error: Conflict) -> str:
    fields: dict[str, list[str]] = {}
    for cause in error.causes:
        fields.setdefault(_manager(cause.message), []).append(cause.field)
    owners = "; ".join(f"{manager} owns {', '.join(paths)}" for manager, paths in sorted(fields.items()))
    return f"cannot apply {named}: {owners or error}. Change the fields there, or take them over with --force-conflicts"


def _content(obj: Object) -> dict[str, Any]:
    """What a dry run can be compared by: the API server counts neither versions nor generations up in one."""
    tree = obj.to_dict()
    for name in ("managedFields", "resourceVersion", "generation"):
        tree["metadata"].pop(name, None)
    return tree
