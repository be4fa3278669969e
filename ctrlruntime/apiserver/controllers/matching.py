"""Which volumes fit a claim, and indexes that find them without a look at all of them.

The rules are those of FindMatchingVolume in component-helpers' storage/volume/pv_helpers.go, the order of the search is that of findByClaim in
pkg/controller/volume/persistentvolume/index.go.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from operator import itemgetter
from typing import Final, TypeAlias

from ctrlruntime.apiserver.controllers.keyed import Key
from ctrlruntime.apiserver.controllers.objects import is_deleting, key_of, labels_of, metadata
from ctrlruntime.apiserver.registry.storage_classes import class_of
from ctrlruntime.quantities import parse
from ctrlruntime.schema.trees import Document
from ctrlruntime.selector import from_label_selector

_OTHER_CLASS: Final = "storageClassName does not match"
_OTHER_MODE: Final = "incompatible volumeMode"

Label: TypeAlias = tuple[str, str] | None
_Criteria: TypeAlias = tuple[str, str, str, Label]
"""Class, volume mode, attributes class, and one label: what has to be equal."""
_Modes: TypeAlias = frozenset[str]


def mismatches(volume: Document, claim: Document) -> Iterator[str]:
    """Yield why a claim cannot have a volume, the first reason first (checkVolumeSatisfyClaim in pv_controller.go)."""
    if is_deleting(volume):
        yield f'the volume is marked for deletion "{metadata(volume)["name"]}"'
    if _asked_size(claim) > _size(volume):
        yield "requested PV is too small"
    if class_of(claim) != class_of(volume):
        yield _OTHER_CLASS
    if _attributes_class(claim) != _attributes_class(volume):
        yield "volumeAttributesClassName does not match"
    if _volume_mode(claim) != _volume_mode(volume):
        yield _OTHER_MODE
    if not _access_modes(claim) <= _access_modes(volume):
        yield "incompatible accessMode"


def has_other_mode(volume: Document, claim: Document) -> bool:
    return _volume_mode(claim) != _volume_mode(volume)


def is_named_by(volume: Document, claim: Document) -> bool:
    """Tell whether the volume has or is reserved for the claim (IsVolumeBoundToClaim)."""
    reference: Document = volume["spec"].get("claimRef") or {}
    is_same = (reference.get("namespace"), reference.get("name")) == key_of(claim)
    return is_same and reference.get("uid") in {None, "", metadata(claim)["uid"]}


def is_free(volume: Document) -> bool:
    is_available = (volume.get("status") or {}).get("phase") == "Available"
    return is_available and not volume["spec"].get("claimRef") and not is_deleting(volume)


def fits(volume: Document, claim: Document) -> bool:
    """Tell whether a claim that names no volume can have this one."""
    problems = set(mismatches(volume, claim))
    if volume["spec"].get("claimRef"):  # upstream does not compare the class of a volume that names its claim
        return is_named_by(volume, claim) and problems <= {_OTHER_CLASS}
    selector: Document | None = claim["spec"].get("selector")
    is_selected = not selector or from_label_selector(selector).matches(labels_of(volume))
    return is_free(volume) and not problems and is_selected


def rank(volume: Document) -> tuple[int, list[str]]:
    """Return the place of a volume among those that fit a claim: the one with the fewest access modes is taken."""
    modes = _access_modes(volume)
    return len(modes), sorted(modes)


@dataclass(frozen=True, slots=True)
class Place:
    """What an object offers or asks for, as `FitIndex` keeps it."""

    criteria: tuple[_Criteria, ...]
    modes: _Modes
    size: Decimal


def place_of_volume(volume: Document) -> Place:
    labels: list[Label] = [None, *labels_of(volume).items()]
    return Place(tuple((*_kind(volume), label) for label in labels), _access_modes(volume), _size(volume))


def place_of_claim(claim: Document) -> Place:
    labels: Document = (claim["spec"].get("selector") or {}).get("matchLabels") or {}
    label: Label = min(labels.items(), default=None)
    return Place(((*_kind(claim), label),), _access_modes(claim), _asked_size(claim))


class FitIndex:
    """Keys of volumes or of claims by what they offer or ask for."""

    def __init__(self) -> None:
        self._places: dict[Key, Place] = {}
        self._rows: defaultdict[_Criteria, dict[_Modes, list[tuple[Decimal, Key]]]] = defaultdict(dict)

    def put(self, key: Key, place: Place) -> None:
        self.remove(key)
        self._places[key] = place
        for group in place.criteria:
            insort(self._rows[group].setdefault(place.modes, []), (place.size, key))

    def remove(self, key: Key) -> None:
        place = self._places.pop(key, None)
        if place is None:
            return
        for group in place.criteria:
            rows = self._rows[group]
            row = rows[place.modes]
            del row[bisect_left(row, (place.size, key))]
            if not row:
                del rows[place.modes]
            if not rows:
                del self._rows[group]

    def volumes_for(self, claim: Place) -> Iterator[Key]:
        """Yield the volumes that offer what a claim asks for: those with the fewest access modes first, of them the smallest.

        Nothing may be put or removed meanwhile.
        """
        for group in claim.criteria:
            rows = self._rows.get(group) or {}
            for modes in sorted((modes for modes in rows if claim.modes <= modes), key=lambda m: (len(m), sorted(m))):
                row = rows[modes]
                for index in range(bisect_left(row, claim.size, key=itemgetter(0)), len(row)):
                    yield row[index][1]

    def claims_for(self, volume: Place) -> Iterator[Key]:
        """Yield the claims that ask for no more than a volume offers: those that ask for most first."""
        for group in volume.criteria:
            for modes, row in (self._rows.get(group) or {}).items():
                if modes <= volume.modes:
                    for index in reversed(range(bisect_right(row, volume.size, key=itemgetter(0)))):
                        yield row[index][1]


class Groups:
    """Keys by what they have in common; a key may be in several groups."""

    def __init__(self) -> None:
        self._groups: dict[Key, tuple[Key, ...]] = {}
        self._keys: defaultdict[Key, dict[Key, None]] = defaultdict(dict)

    def put(self, key: Key, *groups: Key) -> None:
        """Put the key in these groups, and in no others."""
        for group in self._groups.pop(key, ()):
            self._keys[group].pop(key)
            if not self._keys[group]:
                del self._keys[group]
        groups = tuple(dict.fromkeys(groups))
        if groups:
            self._groups[key] = groups
        for group in groups:
            self._keys[group][key] = None

    def groups_of(self, key: Key) -> tuple[Key, ...]:
        return self._groups.get(key, ())

    def of(self, group: Key) -> list[Key]:
        return list(self._keys.get(group, ()))


def _kind(obj: Document) -> tuple[str, str, str]:
    return class_of(obj), _volume_mode(obj), _attributes_class(obj)


def _volume_mode(obj: Document) -> str:
    return str(obj["spec"].get("volumeMode") or "Filesystem")


def _attributes_class(obj: Document) -> str:
    return str(obj["spec"].get("volumeAttributesClassName") or "")


def _access_modes(obj: Document) -> _Modes:
    return frozenset(obj["spec"].get("accessModes") or ())


def _asked_size(claim: Document) -> Decimal:
    return parse(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0"))


def _size(volume: Document) -> Decimal:
    return parse((volume["spec"].get("capacity") or {}).get("storage", "0"))


__all__ = [
    "FitIndex",
    "Groups",
    "Place",
    "fits",
    "has_other_mode",
    "is_free",
    "is_named_by",
    "mismatches",
    "place_of_claim",
    "place_of_volume",
    "rank",
]  # fmt: skip
