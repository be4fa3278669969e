"""Maps kinds to the resources of the API server, and back.

The constructor sends no request. The first call loads discovery in two requests (the aggregated form). From an older server it loads the
group list, and then one document for each group version. For an unknown kind it reads discovery again, so that kinds installed later are
found.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
import weakref
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import msgspec

from ctrlruntime.api.kind import GroupVersionKind, GroupVersionResource, guess_plural
from ctrlruntime.errors import APIStatusError, CtrlError, NoMatchError, ServiceUnavailable, TransportError
from ctrlruntime.rest.content import UNREADABLE, unreadable

T = TypeVar("T")

Fetch: TypeAlias = Callable[[str, str], Awaitable[tuple[int, bytes]]]
"""GET a path with an Accept header.

`await fetch(path, accept)` returns the HTTP status and the body, also for a failure.
"""

JSON = "application/json"
AGGREGATED = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,{JSON}"


@dataclass(frozen=True, slots=True, kw_only=True)
class APIResource:
    """One resource in discovery. `subresources` are names such as `status` and `scale`."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, self.kind)

    @property
    def gvr(self) -> GroupVersionResource:
        return GroupVersionResource(self.group, self.version, self.plural)


class RESTMapper:
    """Returns the resource of a kind. Safe in several event loops.

    An unknown kind is not looked up again within `no_match_ttl` seconds. Calls during a load wait for it.
    """

    def __init__(self, fetch: Fetch, *, no_match_ttl: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._no_match_ttl = no_match_ttl
        self._clock = clock
        self._known: _Known | None = None
        self._missing: dict[Hashable, float] = {}
        self._asked_again: dict[str, float] = {}
        self._loads: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, asyncio.Task[Any]]] = (
            weakref.WeakKeyDictionary()
        )

    async def resource_for(self, gvk: GroupVersionKind) -> APIResource:
        """Return the resource of a kind.

        Raises: NoMatchError, APIStatusError, TransportError.
        """

        async def find(known: _Known) -> APIResource | None:
            served = await self._served(known, gvk.group, gvk.version)
            return served.by_kind.get(gvk.kind) if served is not None else None

        return await self._find(gvk, find, lambda known: _no_kind(known, gvk))

    async def kind_for(self, gvr: GroupVersionResource) -> GroupVersionKind:
        """Return the kind of a resource, by its plural.

        Raises: NoMatchError, APIStatusError, TransportError.
        """

        async def find(known: _Known) -> APIResource | None:
            served = await self._served(known, gvr.group, gvr.version)
            return served.by_plural.get(gvr.resource) if served is not None else None

        return (await self._find(gvr, find, lambda known: _no_resource(known, gvr))).gvk

    async def preferred(self, group: str, kind: str) -> APIResource:
        """Return the resource of a kind in the version the server prefers.

        Raises: NoMatchError, APIStatusError, TransportError.
        """

        async def find(known: _Known) -> APIResource | None:
            for version in known.versions.get(group, ()):
                served = await self._served(known, group, version)
                if served is not None and kind in served.by_kind:
                    return served.by_kind[kind]
            return None

        return await self._find((group, kind), find, lambda known: _no_kind(known, GroupVersionKind(group, "", kind)))

    async def is_namespaced(self, gvk: GroupVersionKind) -> bool:
        """Return whether a kind is namespaced. Raises: as `resource_for`."""
        return (await self.resource_for(gvk)).namespaced

    def loaded(self) -> list[APIResource]:
        """Return the loaded resources. Sends no request.

        Those in the preferred version of a group come before the same in other versions.
        """
        known = self._known
        if known is None:
            return []
        served = (
            known.served.get((group, version)) for group, versions in known.versions.items() for version in versions
        )
        return [resource for each in served if each is not None for resource in each.by_plural.values()]

    async def ask_again(self, gvk: GroupVersionKind) -> APIResource:
        """Return the resource of a kind, read from the server again.

        For a caller with a reason to doubt the cached one.

        The server is queried at most once in `no_match_ttl` seconds for each group. Raises: as `resource_for`.
        """
        now = self._clock()
        if now - self._asked_again.get(gvk.group, float("-inf")) >= self._no_match_ttl:
            self._asked_again[gvk.group] = now
            self.invalidate(gvk.group)
        return await self.resource_for(gvk)

    def invalidate(self, group: str | None = None) -> None:
        """Drop the cached data of `group`, or of all groups if it is None.

        The next call reads it from the server.

        Call it when discovery has changed: a CRD was installed, or the server responded with 404 for a resource's path.
        """
        self._missing.clear()
        if group is None or self._known is None:
            self._known = None
        else:
            self._known.forget(group)

    async def close(self) -> None:
        """Cancel queries on the running loop, before its connections are closed."""
        loads = list(self._loads.get(asyncio.get_running_loop(), {}).values())
        for task in loads:
            task.cancel()
        if loads:
            await asyncio.wait(loads)

    # --- asking, and asking again ---------------------------------------------------------------------------------

    async def _find(
        self,
        key: Hashable,
        find: Callable[[_Known], Awaitable[APIResource | None]],
        explain: Callable[[_Known], CtrlError],
    ) -> APIResource:
        first = self._known
        known = first if first is not None else await self._reload()
        if (found := await find(known)) is not None:
            return found
        if first is not None and not self._is_known_missing(key):
            known = await self._reload()
            if (found := await find(known)) is not None:
                return found
        self._missing.setdefault(key, self._clock())
        raise explain(known)

    def _is_known_missing(self, key: Hashable) -> bool:
        since = self._missing.get(key)
        if since is None or self._clock() - since >= self._no_match_ttl:
            self._missing.pop(key, None)
            return False
        return True

    async def _served(self, known: _Known, group: str, version: str) -> _Served | None:
        if version not in known.versions.get(group, ()):
            return None
        if (group, version) in known.stale:
            return None
        served = known.served.get((group, version))
        if served is None:
            served = await self._once((id(known), group, version), lambda: self._load_version(group, version))
            if served is None:
                # The list named a version that is gone: what else it says of the group is old as well.
                known.forget(group)
                return None
            known.served[group, version] = served
        return served

    async def _reload(self) -> _Known:
        return await self._once("all", self._load)

    async def _once(self, key: Hashable, load: Callable[[], Awaitable[T]]) -> T:
        """Run a load, or wait for the one under way on this loop.

        A caller that is cancelled does not end it for the others.
        """
        loads = self._loads.setdefault(asyncio.get_running_loop(), {})
        task = loads.get(key)
        if task is None:
            task = loads[key] = asyncio.ensure_future(_run(load))
            task.add_done_callback(lambda done: _finish(loads, key, done))
        return await asyncio.shield(task)

    # --- loading --------------------------------------------------------------------------------------------------

    async def _load(self) -> _Known:
        core, groups = await asyncio.gather(self._get("/api", AGGREGATED), self._get("/apis", AGGREGATED))
        if core is None and groups is None:
            raise TransportError(
                "neither /api nor /apis exists at this address. Check that it is the address of a Kubernetes API server"
            )
        known = _Known()
        for body in (core, groups):
            if body is not None:
                known.read(body)
        self._known = known
        return known

    async def _load_version(self, group: str, version: str) -> _Served | None:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        body = await self._get(path, JSON)
        return None if body is None else _legacy_resources(group, version, _decode(path, body, _decode_resources))

    async def _get(self, path: str, accept: str) -> bytes | None:
        status, body = await self._fetch(path, accept)
        if status == 404:
            return None
        if status >= 300:
            raise APIStatusError.from_response(status, body)
        return body


async def _run(load: Callable[[], Awaitable[T]]) -> T:
    return await load()


def _finish(loads: dict[Hashable, asyncio.Task[Any]], key: Hashable, task: asyncio.Task[Any]) -> None:
    loads.pop(key, None)
    if not task.cancelled():
        task.exception()  # those who waited have it; when all of them are gone, nobody wants it


class _Served:
    """The resources of one group version."""

    def __init__(self, resources: Iterable[APIResource]) -> None:
        self.by_plural = {resource.plural: resource for resource in resources}
        self.by_kind: dict[str, APIResource] = {}
        for resource in self.by_plural.values():
            self.by_kind.setdefault(resource.kind, resource)


class _Known:
    """The data of discovery.

    The versions of each group, the preferred one first, and the resources of loaded versions.
    """

    def __init__(self) -> None:
        self.versions: dict[str, tuple[str, ...]] = {}
        self.served: dict[tuple[str, str], _Served] = {}
        self.stale: set[tuple[str, str]] = set()
        self._groups: list[_ServedGroup] = []
        """Kept for other clusters."""

    def forget(self, group: str) -> None:
        for version in self.versions.pop(group, ()):
            self.served.pop((group, version), None)
            self.stale.discard((group, version))

    def read(self, body: bytes) -> None:
        document = _decode("/api and /apis", body, _decode_groups)
        match document.kind:
            case "APIGroupDiscoveryList":
                for group in document.items or ():
                    self._add_group(_served_group(bytes(group)))
            case "APIVersions":
                self.versions[""] = document.versions or ()
            case _:
                for entry in document.groups or ():
                    preferred = entry.preferred_version.version
                    versions = [version.version for version in entry.versions or ()]
                    self.versions[entry.name] = tuple(sorted(versions, key=lambda version: version != preferred))

    def _add_group(self, group: _ServedGroup) -> None:
        self._groups.append(group)
        self.versions[group.name] = group.versions
        self.stale |= group.stale
        self.served |= group.served


class _ServedGroup:
    """The resources of one group. Clusters with the same versions of a group have the same object; nothing in it changes."""

    def __init__(self, group: _Group) -> None:
        self.name = name = group.metadata.name
        self.versions = tuple(version.version for version in group.versions or ())
        self.stale: set[tuple[str, str]] = set()
        self.served: dict[tuple[str, str], _Served] = {}
        for version in group.versions or ():
            if version.freshness == "Stale" and not version.resources:
                self.stale.add((name, version.version))
            else:
                resources = (_aggregated(name, version.version, resource) for resource in version.resources or ())
                self.served[name, version.version] = _Served(resource for resource in resources if resource.kind)


_groups: weakref.WeakValueDictionary[bytes, _ServedGroup] = weakref.WeakValueDictionary()
"""The groups in use, by the hash of their document. Safe in several threads: at worst, a group is there twice."""


def _served_group(document: bytes) -> _ServedGroup:
    content = hashlib.sha256(document).digest()
    group = _groups.get(content)
    if group is None:
        group = _groups[content] = _ServedGroup(_decode("/api and /apis", document, _decode_group))
    return group


# --- the documents --------------------------------------------------------------------------------------------------


class _Document(msgspec.Struct, rename="camel", gc=False):
    """Part of a discovery document. A server in Go may send null for an empty list."""


class _ResponseKind(_Document):
    kind: str = ""


class _Subresource(_Document):
    subresource: str = ""


class _Resource(_Document):
    resource: str
    response_kind: _ResponseKind | None = None
    scope: str = "Namespaced"
    singular_resource: str = ""
    verbs: tuple[str, ...] | None = ()
    short_names: tuple[str, ...] | None = ()
    categories: tuple[str, ...] | None = ()
    subresources: tuple[_Subresource, ...] | None = ()


class _Version(_Document):
    version: str
    freshness: str = "Current"
    resources: tuple[_Resource, ...] | None = ()


class _Name(_Document):
    name: str = ""


class _Group(_Document):
    metadata: _Name = msgspec.field(default_factory=_Name)
    versions: tuple[_Version, ...] | None = ()


class _GroupVersion(_Document):
    version: str = ""


class _LegacyGroup(_Document):
    name: str
    versions: tuple[_GroupVersion, ...] | None = ()
    preferred_version: _GroupVersion = msgspec.field(default_factory=_GroupVersion)


class _Root(_Document):
    """Both forms of `/api` and `/apis`; `kind` tells which."""

    kind: str = ""
    items: tuple[msgspec.Raw, ...] | None = ()
    versions: tuple[str, ...] | None = ()
    groups: tuple[_LegacyGroup, ...] | None = ()


class _LegacyResource(_Document):
    name: str
    kind: str = ""
    namespaced: bool = False
    singular_name: str = ""
    verbs: tuple[str, ...] | None = ()
    short_names: tuple[str, ...] | None = ()
    categories: tuple[str, ...] | None = ()


class _LegacyResourceList(_Document):
    resources: tuple[_LegacyResource, ...] | None = ()


_decode_groups = msgspec.json.Decoder(_Root).decode
_decode_group = msgspec.json.Decoder(_Group).decode
_decode_resources = msgspec.json.Decoder(_LegacyResourceList).decode


def _decode(path: str, body: bytes, decode: Callable[[bytes], T]) -> T:
    try:
        return decode(body)
    except UNREADABLE as error:
        raise TransportError(
            f"GET {path}: the response is not a discovery document: {unreadable(error, body)}"
        ) from error


def _aggregated(group: str, version: str, resource: _Resource) -> APIResource:
    return APIResource(
        group=group,
        version=version,
        plural=resource.resource,
        # A resource that exists only by its subresources has no kind of its own.
        kind=resource.response_kind.kind if resource.response_kind is not None else "",
        namespaced=resource.scope == "Namespaced",
        verbs=resource.verbs or (),
        subresources=tuple(subresource.subresource for subresource in resource.subresources or ()),
        singular=resource.singular_resource,
        short_names=resource.short_names or (),
        categories=resource.categories or (),
    )


def _legacy_resources(group: str, version: str, document: _LegacyResourceList) -> _Served:
    subresources: dict[str, list[str]] = {}
    for resource in document.resources or ():
        plural, _, subresource = resource.name.partition("/")
        if subresource:
            subresources.setdefault(plural, []).append(subresource)
    return _Served(
        APIResource(
            group=group,
            version=version,
            plural=resource.name,
            kind=resource.kind,
            namespaced=resource.namespaced,
            verbs=resource.verbs or (),
            subresources=tuple(subresources.get(resource.name, ())),
            singular=resource.singular_name,
            short_names=resource.short_names or (),
            categories=resource.categories or (),
        )
        for resource in document.resources or ()
        if "/" not in resource.name
    )


# --- messages -------------------------------------------------------------------------------------------------------


def _api_version(group: str, version: str) -> str:
    return GroupVersionKind(group, version, "").api_version


def _no_kind(known: _Known, gvk: GroupVersionKind) -> CtrlError:
    if unavailable := _unavailable(known, gvk.group, gvk.version):
        return unavailable
    what = f"{gvk.kind} of {gvk.api_version}" if gvk.version else f"{gvk.kind} of group {gvk.group or 'core'}"
    others = [
        version
        for version in known.versions.get(gvk.group, ())
        if (served := known.served.get((gvk.group, version))) is not None and gvk.kind in served.by_kind
    ]
    if others:
        return NoMatchError(f"the API server does not serve {what}; it serves the kind in {', '.join(others)}")
    if gvk.version and (versions := known.versions.get(gvk.group)) and gvk.version not in versions:
        return NoMatchError(f"the API server does not serve {what}; of that group it has {', '.join(versions)}")
    return NoMatchError(f"the API server does not serve {what}; {_advice(gvk.group, guess_plural(gvk.kind))}")


def _no_resource(known: _Known, gvr: GroupVersionResource) -> CtrlError:
    if unavailable := _unavailable(known, gvr.group, gvr.version):
        return unavailable
    what = f"{gvr.resource} of {gvr.api_version}"
    return NoMatchError(f"the API server does not serve {what}; {_advice(gvr.group, gvr.resource)}")


def _unavailable(known: _Known, group: str, version: str) -> CtrlError | None:
    """Return the error for a group version (empty: any of the group) that the server cannot tell about at present."""
    for stale in known.versions.get(group, ()):
        if (group, stale) in known.stale and version in {"", stale}:
            return ServiceUnavailable(
                f"the API server cannot say what {_api_version(group, stale)} serves, for the server behind it "
                f"does not answer; see kubectl get apiservice {stale}.{group}"
            )
    return None


def _advice(group: str, plural: str) -> str:
    if "." not in group:
        return f"see what it serves with: kubectl api-resources --api-group={group!r}"
    look = f"kubectl get crd {plural}.{group}"
    return f"if it is a custom resource, its CRD may be missing: look with `{look}` and install it"
