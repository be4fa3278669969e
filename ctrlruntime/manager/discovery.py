"""Discovery: registers the kinds of a package, and calls the `setup_with_manager(mgr)` of its modules.

A new controller is a new file, and no other file changes. All modules are imported before the first call, so every kind is registered then.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final, Protocol, TypeGuard

from ctrlruntime.api.object import Object, PartialObjectMetadata, Unstructured, kind_of
from ctrlruntime.errors import ConfigError, NotRegisteredError
from ctrlruntime.scheme import Scheme

__all__ = ["discover", "is_kind", "modules_below"]

SETUP: Final = "setup_with_manager"


class HasScheme(Protocol):
    """The part of a manager that discovery uses.

    The functions it finds receive the whole manager.
    """

    @property
    def scheme(self) -> Scheme: ...


def discover(manager: HasScheme, package: str) -> None:
    """Register the kinds of a package, and call `setup_with_manager(mgr)` of each module that has one.

    Modules are imported in the order of their dotted names, with sub-packages, except `__main__` and tests. Raises: ConfigError for a
    missing package, a module that cannot be imported, a `setup_with_manager` that is async or has other parameters, and a kind with two
    classes.
    """
    modules = sorted(modules_below(package, _imported), key=lambda module: module.__name__)
    setups = [(module, _setup(module)) for module in modules]
    for module in modules:
        _register(manager.scheme, module)
    for _, setup in setups:
        if setup is not None:
            setup(manager)


def modules_below(name: str, imported: Callable[[str], ModuleType]) -> Iterator[ModuleType]:
    """Import a package or module and all modules below it with `imported`, and yield each, except `__main__` and tests."""
    module = imported(name)
    yield module
    for entry in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if not _is_left_out(entry.name):
            yield from modules_below(f"{name}.{entry.name}", imported)


def _is_left_out(name: str) -> bool:
    return name in {"__main__", "tests", "conftest"} or name.startswith("test_") or name.endswith("_test")


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise ConfigError(
                f"cannot import package {name}: it does not exist; give its dotted name, and run from its folder or install it"
            ) from error
        raise _import_failed(name, error) from error
    except Exception as error:
        raise _import_failed(name, error) from error


def _import_failed(name: str, error: Exception) -> ConfigError:
    return ConfigError(f"{name} cannot be imported: {type(error).__name__}: {' '.join(str(error).split())}")


def _setup(module: ModuleType) -> Any:
    """Return the function of a module after a look at it. One that is imported from elsewhere is called where it is at home."""
    function = vars(module).get(SETUP)
    if function is None or getattr(function, "__module__", module.__name__) != module.__name__:
        return None
    where = f"{module.__name__}.{SETUP}"
    if not callable(function):
        raise ConfigError(f"{where} is not a function: write `def {SETUP}(mgr: ctrl.Manager) -> None`")
    if inspect.iscoroutinefunction(function):
        raise ConfigError(f"{where} is async, but is called before the event loop runs. Make it a plain function")
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        raise ConfigError(
            f"{where} must have one parameter, the manager: def {SETUP}(mgr: ctrl.Manager) -> None"
        ) from None
    return function


def _register(scheme: Scheme, module: ModuleType) -> None:
    builtin = Scheme()
    for value in list(vars(module).values()):
        if not is_kind(value) or value.__module__ != module.__name__ or builtin.knows(kind_of(value).gvk):
            continue
        try:
            scheme.register(value)
        except (ValueError, NotRegisteredError) as error:
            raise ConfigError(str(error)) from error


def is_kind(value: object) -> TypeGuard[type[Object]]:
    """Return whether a value is a class of a kind."""
    if not (isinstance(value, type) and issubclass(value, Object)):
        return False
    return not issubclass(value, (Unstructured, PartialObjectMetadata)) and value.__kind_info__ is not None
