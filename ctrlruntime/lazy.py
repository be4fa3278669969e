"""Names of a package that are loaded on first use, so that importing the package is fast."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["lazy_attributes"]


def lazy_attributes(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package.

    It stores loaded names in the package, so that each is looked up once.

    Args:
        package: The name of the package.
        homes: The module that defines each name, relative to the package (`{"Cache": ".cache"}`), or absolute.
            "" for a name that is a module of the package itself.

    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}{_hint(package, homes, name)}")
        home = homes[name]
        if not home:
            return importlib.import_module(f".{name}", package)  # which makes it an attribute of the package
        value = getattr(importlib.import_module(home, package), name)
        setattr(sys.modules[package], name, value)
        return value

    return load


def _hint(package: str, homes: Mapping[str, str], name: str) -> str:
    """Return where a public name is: in a module of the package that is loaded.

    Modules are not loaded for it, because `from package import module` looks for the attribute before it loads the module.
    """
    for module, home in homes.items():
        found = None if home or name.startswith("_") else sys.modules.get(f"{package}.{module}")
        if found is not None and name in getattr(found, "__all__", ()):
            return f". Did you mean: {found.__name__}.{name}?"
    return ""
