"""The field manager of one served version of a kind: keeps managedFields through updates, and applies configurations.

It takes trees and the types of their fields, and hands back trees. An update costs one walk over the two objects; nothing is built for a
field that did not change.
"""

from __future__ import annotations

from collections.abc import Callable

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.apply.comparison import UNOWNED, Comparison
from ctrlruntime.apiserver.apply.conflicts import Conflicts, conflict
from ctrlruntime.apiserver.apply.fieldsets import FieldSet, cut, difference, intersection, union
from ctrlruntime.apiserver.apply.last_applied import last_applied, not_from_last_applied, renew_last_applied
from ctrlruntime.apiserver.apply.merge import merge, named_fields, settled
from ctrlruntime.apiserver.apply.ownership import (
    BEFORE_FIRST_APPLY,
    Owned,
    Owner,
    Ownership,
    canonical,
    forget_ancient,
    owner_of,
    read,
    write,
)
from ctrlruntime.apiserver.apply.pruning import Pruning
from ctrlruntime.apiserver.apply.resets import Reset
from ctrlruntime.apiserver.apply.types import Type, UnfitError, Versions
from ctrlruntime.apiserver.apply.validation import listed, problems
from ctrlruntime.apiserver.encoding import timestamp
from ctrlruntime.errors import BadRequest
from ctrlruntime.schema.trees import Document, is_same

_KUBECTL = "kubectl"


class FieldManager:
    """Ownership of the fields of one kind in one version.

    Args:
        root: the type of its objects.
        api_version: the version in which they are written here.
        kind: as in the objects.
        zero: the initial object of a create, with the fields that the server's own type always has.
        versions: the other versions of the kind.
        settles: whether the schema has changed, so that sets may name paths below what is one value now.
        sorts_fields: whether the order of keys in the JSON is ours to make (built-in kinds).
        now: seconds since the epoch.

    """

    def __init__(
        self,
        root: Type,
        api_version: str,
        kind: str,
        *,
        zero: Document,
        versions: Versions,
        sorts_fields: bool,
        now: Callable[[], float],
        settles: bool = False,
    ) -> None:
        self._root = root
        self._settles = settles
        self._api_version = api_version
        self._kind = kind
        self._zero = zero
        self._versions = versions
        self._sorts_fields = sorts_fields
        self._now = now
        self._pruning = Pruning(versions, root, api_version)

    # Create, update, patch

    def updated(
        self,
        live: Document | None,
        new: Document,
        *,
        manager: str,
        subresource: str,
        reset: Reset,
        is_cleared: bool = False,
    ) -> None:
        """Set `metadata.managedFields` of `new`, a change of `live` by `manager` (None: it is created).

        Nothing is tracked of an object that has no owners. `is_cleared`: the client sent an empty list, and so wants none.
        """
        metadata: Document = new["metadata"]
        given = metadata.pop("managedFields", None)
        present: list[Document] = [] if live is None else live["metadata"].get("managedFields") or []
        entries = present
        if not subresource:
            if is_cleared or given == [{}]:
                entries = []
            elif given is not None and given != present:
                entries = canonical(given) or present
        if not entries and live is not None:
            return
        if self._has_unfit(live, new, reset):
            return
        ownership = self._read(entries)
        try:
            comparison = self._compare(live, new, reset)
        except UnfitError:
            return  # as upstream, whose UpdateNoErrors forgets all owners then
        changed = comparison.changed
        if not changed and not comparison.removed:
            if entries:
                is_kept = entries is present and len(ownership) == len(entries) and not self._settles
                metadata["managedFields"] = entries if is_kept else self._write(ownership)
            return
        try:
            _take_from_others(ownership, None, comparison)
        except UnfitError:
            return
        if changed:
            owner = owner_of(manager, "Update", self._api_version, subresource)
            self._give(ownership, owner, changed)
            if len(ownership) > 10:
                forget_ancient(ownership)
        written = self._write(ownership)
        if written:
            metadata["managedFields"] = written

    def _has_unfit(self, live: Document | None, new: Document, reset: Reset) -> bool:
        """Tell whether the part of a custom resource that the write cannot set is not of its type.

        The rest was validated, and this part will be dropped; but upstream tracks nothing of an object that it cannot read (UpdateNoErrors
        in apimachinery's pkg/util/managedfields/internal/fieldmanager.go).
        """
        for name in () if self._sorts_fields else reset.roots:
            kind, value = self._root.child(name), new.get(name)
            if value is None or kind is None or (live is not None and is_same(value, live.get(name))):
                continue
            if problems(kind, value):
                return True
        return False

    def _give(self, ownership: Ownership, owner: Owner, fields: FieldSet) -> None:
        owned = ownership.get(owner)
        if owned is not None:
            fields = union(fields, owned.fields)
        ownership[owner] = Owned(fields, self._api_version, self._moment())

    def _read(self, entries: list[Document]) -> Ownership:
        ownership = read(entries)
        if self._settles:
            for owned in ownership.values():
                root = self._root if owned.version == self._api_version else self._versions.type_of(owned.version)
                if root is not None:
                    owned.fields = settled(root, owned.fields)
        return ownership

    def _write(self, ownership: Ownership) -> list[Document]:
        return write(ownership, sorts_fields=self._sorts_fields)

    def _moment(self) -> str:
        return timestamp(self._now())

    def _compare(self, live: Document | None, new: Document, reset: Reset) -> Comparison:
        return Comparison(
            self._versions, self._root, self._api_version, zero=self._zero, live=live, new=new, reset=reset
        )

    # Apply

    def applied(
        self, live: Document | None, config: Document, *, manager: str, force: bool, subresource: str, reset: Reset
    ) -> Document:
        """Return the object after `manager` applied a configuration (`live` is None: it is created); the arguments stay as they are.

        Raises: Conflict when others own fields with other values and `force` is not set, BadRequest, and 500 without a reason when
            the configuration does not fit the type.
        """
        self._check(config)
        wrong = problems(self._root, config)
        if wrong:
            raise failures.plain_internal(
                f"failed to create typed patch object ({self._shown(config)}): {listed(wrong)}"
            )
        if live is None:
            return self._created(config, manager, subresource, reset)
        bare = _without_owners(live)
        ownership = self._read(live["metadata"].get("managedFields") or [])
        if not ownership:
            self._own_before(ownership, bare, subresource, reset)
        owner = owner_of(manager, "Apply", self._api_version, subresource)
        try:
            result = self._merged(bare, config, ownership, owner, reset, force=force)
        except UnfitError as error:
            raise failures.plain_internal(str(error)) from None
        if result is not bare and manager == _KUBECTL:
            renew_last_applied(result, config)
        elif result is bare and manager == _KUBECTL and last_applied(result):
            result = {**result, "metadata": dict(result["metadata"])}
            renew_last_applied(result, config)
        written = self._write(ownership)
        if written and isinstance(result.get("metadata"), dict):
            result["metadata"] = {**result["metadata"], "managedFields": written}
        return result

    def _check(self, config: Document) -> None:
        version, kind = config.get("apiVersion") or "", config.get("kind") or ""
        if version != self._api_version or kind != self._kind:
            shown = version if "/" in str(version) else f"/{version}"
            raise BadRequest(f"invalid object type: {shown}, Kind={kind}")
        metadata = config.get("metadata")
        if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
            raise BadRequest("metadata.managedFields must be nil")

    def _shown(self, document: Document) -> str:
        metadata = document.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        version = self._api_version if "/" in self._api_version else f"/{self._api_version}"
        return f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}; {version}, Kind={self._kind}"

    def _created(self, config: Document, manager: str, subresource: str, reset: Reset) -> Document:
        result = dict(config)
        fields = difference(self._named(config, reset), UNOWNED)
        metadata = dict(config.get("metadata") or {})
        if fields:
            owner = owner_of(manager, "Apply", self._api_version, subresource)
            metadata["managedFields"] = self._write({owner: Owned(fields, self._api_version, self._moment())})
        result["metadata"] = metadata
        return result

    def _own_before(self, ownership: Ownership, live: Document, subresource: str, reset: Reset) -> None:
        """Give what is there to the manager that stands for all the writes before the first apply."""
        changed = self._compare(None, live, reset).changed
        if changed:
            owner = owner_of(BEFORE_FIRST_APPLY, "Update", self._api_version, subresource)
            ownership[owner] = Owned(changed, self._api_version, self._moment())

    def _named(self, config: Document, reset: Reset) -> FieldSet:
        named = named_fields(self._root, config) or {}
        for name in reset.roots:
            named.pop(f"f:{name}", None)
        return cut(named, reset.paths) if reset.paths else named

    def _merged(
        self, live: Document, config: Document, ownership: Ownership, owner: Owner, reset: Reset, *, force: bool
    ) -> Document:
        """Return the object after the apply, as `_apply`. Raises: Conflict, UnfitError."""
        try:
            return self._apply(live, config, ownership, owner, reset, force=force)
        except Conflicts as conflicts:
            left = conflicts.fields
            if owner.manager == _KUBECTL:
                left = not_from_last_applied(self._root, self._api_version, live, left)
            if left:
                raise conflict(left) from None
            return self._apply(live, config, ownership, owner, reset, force=True)

    def _apply(
        self, live: Document, config: Document, ownership: Ownership, owner: Owner, reset: Reset, *, force: bool
    ) -> Document:
        """Return the object after the apply and change `ownership` accordingly; the live object itself when nothing changed."""
        former = ownership.get(owner)
        named = self._named(config, reset)
        result: Document = merge(self._root, live, config)
        wanted = dict(ownership)
        wanted[owner] = Owned(named, self._api_version, former.time if former else "")
        if former is not None and former.fields:
            result = self._pruning.pruned(result, wanted, former, named)
        comparison = self._compare(live, result, reset)
        if not force:
            _refuse_conflicts(wanted, owner, comparison)
        mine = Owned(difference(named, UNOWNED), self._api_version, wanted[owner].time)
        ownership[owner] = mine
        _take_from_others(ownership, owner, comparison)
        is_unchanged = is_same(result, live)
        if not is_unchanged:
            mine.time = self._moment()
        if not mine.fields:
            del ownership[owner]
        return live if is_unchanged else result


def _take_from_others(ownership: Ownership, taker: Owner | None, comparison: Comparison) -> None:
    """Take away from all but `taker` what was changed or removed; owners whose version is not served any more go."""
    for owner, owned in list(ownership.items()):
        if owner == taker:
            continue
        there = comparison.at(owned.version)
        if there is None:
            del ownership[owner]
            continue
        left = difference(difference(owned.fields, there.changed), there.removed)
        if not left:
            del ownership[owner]
        elif left is not owned.fields:
            owned.fields = left


def _refuse_conflicts(ownership: Ownership, taker: Owner, comparison: Comparison) -> None:
    """Raises: Conflicts when others own what was changed."""
    found: dict[Owner, FieldSet] = {}
    for owner, owned in ownership.items():
        if owner == taker:
            continue
        there = comparison.at(owned.version)
        disputed = intersection(owned.fields, there.changed) if there is not None else {}
        if disputed:
            found[owner] = disputed
    if found:
        raise Conflicts(found)


def _without_owners(document: Document) -> Document:
    metadata = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    return {**document, "metadata": metadata}


__all__ = ["FieldManager"]
