"""Scheme: maps kinds to classes.

The built-in kinds need no registration; their modules are loaded on first use. Register all other kinds by their class. You create a scheme
and pass it on; there is not a global one.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TypeGuard

from ctrlruntime.api.groups import MODULES
from ctrlruntime.api.kind import GroupVersionKind, KindInfo
from ctrlruntime.api.object import Object, PartialObjectMetadata, Unstructured, kind_of
from ctrlruntime.errors import NotRegisteredError
from ctrlruntime.spelling import nearest

__all__ = ["Scheme", "default_scheme"]


class Scheme:
    """Maps kinds to classes, and classes to kinds: `scheme.register(Memcached)`.

    With `builtin=False` it does not have the built-in kinds.
    """

    def __init__(self, *classes: type[Object], builtin: bool = True) -> None:
        self._classes: dict[GroupVersionKind, type[Object]] = {}
        self._builtin = builtin
        self.register(*classes)

    def register(self, *classes: type[Object]) -> None:
        """Register classes. A class that is already registered is ignored.

        Raises: TypeError if a class is not a subclass of Object, NotRegisteredError for a class without group and version, ValueError if
        another class is registered for the same kind.
        """
        for cls in classes:
            if not _is_object_class(cls):
                raise TypeError(f"cannot register {cls!r}: it is not a subclass of ctrl.Object")
            name = kind_of(cls).gvk
            present = self._classes.get(name)
            if present is not None and present is not cls:
                raise ValueError(
                    f"cannot register {_path(cls)}: {name} is registered as {_path(present)}. "
                    f"Use that class, another kind name, or a separate Scheme"
                )
            self._classes[name] = cls

    def class_for(self, gvk: GroupVersionKind) -> type[Object]:
        """Return the class of a kind.

        Registered classes override built-in ones. Raises: NotRegisteredError.
        """
        found = self._classes.get(gvk) or self._find_builtin(gvk)
        if found is None:
            raise NotRegisteredError(self._advice(gvk))
        return found

    def knows(self, gvk: GroupVersionKind) -> bool:
        """Return whether the kind has a class."""
        return gvk in self._classes or self._find_builtin(gvk) is not None

    def gvk_for(self, kind: type[Object] | Object) -> GroupVersionKind:
        """Return the kind of a class or object.

        Unstructured and metadata-only classes need not be registered.

        Raises: NotRegisteredError.
        """
        return self.info_for(kind).gvk

    def info_for(self, kind: type[Object] | Object) -> KindInfo:
        """Return the group, version, kind and names of a class or object.

        Raises: NotRegisteredError.
        """
        cls = kind if isinstance(kind, type) else type(kind)
        info = kind_of(kind)
        if _stands_for_any_kind(cls):
            return info
        known = self._classes.get(info.gvk) or self._find_builtin(info.gvk)
        if known is cls:
            return info
        if known is None:
            raise NotRegisteredError(f"{_path(cls)} is not in the Scheme; call scheme.register({cls.__name__})")
        raise NotRegisteredError(
            f"{_path(cls)} is not in the Scheme: its class of {info.gvk} is {_path(known)}. "
            f"Use that class, or a separate Scheme"
        )

    def decode(self, raw: bytes) -> Object:
        """Decode an object from JSON, with the class of its apiVersion and kind.

        Raises: NotRegisteredError, DecodeError.
        """
        document = Unstructured.from_json(raw)
        return self.class_for(GroupVersionKind.parse(document.api_version, document.kind)).from_json(raw)

    def versions_of(self, group: str, kind: str) -> tuple[str, ...]:
        """Return the versions of a kind that have a class, sorted by name.

        Built-in versions are included.
        """
        versions = {name.version for name in self._classes if (name.group, name.kind) == (group, kind)}
        for module_group, version in MODULES:
            if module_group == group and self._find_builtin(GroupVersionKind(group, version, kind)) is not None:
                versions.add(version)
        return tuple(sorted(versions))

    def __iter__(self) -> Iterator[type[Object]]:
        """Iterate over the registered classes in order of registration, without the built-in ones."""
        return iter(self._classes.values())

    def __contains__(self, kind: object) -> bool:
        if not _is_object_class(kind):
            return False
        try:
            self.info_for(kind)
        except NotRegisteredError:
            return False
        return True

    def copy(self) -> Scheme:
        """Return an independent copy of the scheme."""
        return Scheme(*self, builtin=self._builtin)

    def _find_builtin(self, gvk: GroupVersionKind) -> type[Object] | None:
        module = MODULES.get((gvk.group, gvk.version)) if self._builtin else None
        if module is None:
            return None
        found = getattr(importlib.import_module(module), gvk.kind, None)
        return found if _is_object_class(found) and kind_of(found).gvk == gvk else None

    def _advice(self, gvk: GroupVersionKind) -> str:
        others = [name for name in self._classes if (name.group, name.kind) == (gvk.group, gvk.kind)]
        if others:
            return f"{gvk} is not in the Scheme, which has the kind in version {', '.join(o.version for o in others)}"
        names = {name.kind for name in self._classes}
        near = nearest(gvk.kind, names)
        hint = f" (there is a {near})" if near else ""
        return (
            f"{gvk} is not in the Scheme{hint}; call scheme.register(…) with its class, "
            f'or use Unstructured.of("{gvk.api_version}", "{gvk.kind}")'
        )


def _is_object_class(value: object) -> TypeGuard[type[Object]]:
    return isinstance(value, type) and issubclass(value, Object)


def _stands_for_any_kind(cls: type[Object]) -> bool:
    return issubclass(cls, (Unstructured, PartialObjectMetadata))


def _path(cls: type[Object]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def default_scheme() -> Scheme:
    """Return a new scheme with the built-in kinds."""
    return Scheme()
