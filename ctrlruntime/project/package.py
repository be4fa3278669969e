"""What the Python package of an operator declares: its kinds, its permissions, its election, and its `setup`.

Everything is found by importing, nothing by reading source text. The package and all of its submodules are imported, except for
`__main__` and tests (`test_*`, `*_test`, `tests`, `conftest`). What a module only imports from elsewhere is not the package's.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ctrlruntime.api.object import Object, kind_of
from ctrlruntime.errors import ConfigError, GenerateError
from ctrlruntime.manager.discovery import is_kind, modules_below
from ctrlruntime.markers import RBACRule, rbac_rules
from ctrlruntime.project.settings import PYPROJECT, Settings
from ctrlruntime.scheme import Scheme

if TYPE_CHECKING:
    from ctrlruntime.leaderelection import LeaderElection
    from ctrlruntime.manager.manager import Manager
    from ctrlruntime.ownership.options import Sharding
    from ctrlruntime.webhook import SecretCertificates

__all__ = ["Package", "Setup", "load", "make_importable", "with_source"]

Setup: TypeAlias = "Callable[[Manager], None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """The declarations of an operator's package. `setup` is None without one, `election` without leader election and sharding.

    `election` and `certificates` are values at the top level of a module, because a manager receives them where it is created.
    """

    name: str
    modules: tuple[ModuleType, ...]
    kinds: tuple[type[Object], ...]
    rules: tuple[RBACRule, ...]
    setup: Setup | None
    election: LeaderElection | Sharding | None
    certificates: tuple[SecretCertificates, ...] = ()


def make_importable(folder: Path, settings: Settings) -> None:
    """Let the package of the project in `folder` be imported in this process. Raises: ConfigError for a source that is not a folder."""
    source = _source(folder, settings)
    if source not in sys.path:
        sys.path.insert(0, source)


def with_source(environ: Mapping[str, str], folder: Path, settings: Settings) -> dict[str, str]:
    """Return the environment of a process that starts in the project's folder and imports its package.

    Raises: ConfigError for a source that is not a folder.
    """
    source = _source(folder, settings)
    if source == str(folder.resolve()):
        return dict(environ)  # `python -m` looks for modules where it is started
    paths = [source, environ.get("PYTHONPATH", "")]
    return {**environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def _source(folder: Path, settings: Settings) -> str:
    source = settings.source_in(folder)
    if PurePath(settings.source_dir) != PurePath() and not source.is_dir():
        raise ConfigError(
            f"{folder / PYPROJECT}: [tool.ctrlruntime] source-dir: the folder {settings.source_dir} does not exist. "
            "Set it to the folder of the package"
        )
    return str(source)


def load(name: str) -> Package:
    """Import a package, or a module, and return what it declares.

    Raises: GenerateError, of one line, for what cannot be imported and for two functions `setup` or two elections.
    """
    modules = tuple(modules_below(name, _imported))
    return Package(
        name=name,
        modules=modules,
        kinds=tuple(dict.fromkeys(kind for module in modules for kind in _kinds(module))),
        rules=tuple(rule for module in modules for rule in _rules(module)),
        setup=_setup(name, modules),
        election=_election(name, modules),
        certificates=_certificates(modules),
    )


def what_failed(what: str, error: BaseException, package: str) -> GenerateError:
    """Return an error of one line for a failure of the user's code: what it was, and the line of the package where it happened."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if _belongs(frame.filename, package)]
    at = f" ({Path(theirs[-1].filename).name}:{theirs[-1].lineno})" if theirs else ""
    if isinstance(error, SyntaxError) and error.filename:
        at = f" ({Path(error.filename).name}:{error.lineno})"
    text = " ".join(str(error).split())
    return GenerateError(f"{what}{at}: {type(error).__name__}{': ' if text else ''}{text}")


def _belongs(filename: str, package: str) -> bool:
    name = package.partition(".")[0]
    root = sys.modules.get(name)
    if root is not None:
        spots = [*getattr(root, "__path__", ()), getattr(root, "__file__", None) or ""]
    else:  # it failed while it was imported
        spec = importlib.util.find_spec(name)
        spots = [] if spec is None else [*(spec.submodule_search_locations or ()), spec.origin or ""]
    return any(spot and filename.startswith(spot) for spot in spots)


# Modules


def _imported(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")) or name.endswith(".py"):
        dotted = ".".join(part for part in name.removesuffix(".py").split("/") if part not in {"", ".", ".."})
        raise GenerateError(
            f"{name!r} is not a module. Use the dotted name of your package, like {dotted or 'shop.api'}"
        )
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise GenerateError(
                f"module {error.name} does not exist. Use the dotted name of your package, and run from its folder. In a "
                "project, set that folder (such as src) in source-dir of [tool.ctrlruntime]"
            ) from error
        raise what_failed(f"cannot import {name}", error, name) from error
    except (Exception, SystemExit) as error:
        raise what_failed(f"cannot import {name}", error, name) from error


def _own(module: ModuleType) -> Iterator[Any]:
    """What is defined in the module itself, in its order."""
    for value in list(vars(module).values()):
        if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__ == module.__name__:
            yield value


# What they declare


def _kinds(module: ModuleType) -> Iterator[type[Object]]:
    builtin = Scheme()
    for value in _own(module):
        if is_kind(value) and not builtin.knows(kind_of(value).gvk):
            yield value


def _rules(module: ModuleType) -> Iterator[RBACRule]:
    for value in _own(module):
        yield from rbac_rules(value)
        if inspect.isclass(value):
            for member in list(vars(value).values()):
                # Only these two: to ask others for __func__ would make pydantic build the class, here and with its own errors.
                function = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
                if inspect.isfunction(function):
                    yield from rbac_rules(function)


def _setup(name: str, modules: tuple[ModuleType, ...]) -> Setup | None:
    # By identity: a package may import it from the module that has it.
    found = {id(value): value for module in modules for value in _own(module) if _is_setup(value)}
    if len(found) > 1:
        places = ", ".join(f"{value.__module__}.setup" for value in found.values())
        raise GenerateError(f"{name} has several functions setup ({places}). Keep one, and call the others from it")
    for value in found.values():
        return _checked_setup(value)
    return None


def _is_setup(value: Any) -> bool:
    return inspect.isfunction(value) and value.__name__ == "setup"


def _checked_setup(function: Callable[..., Any]) -> Setup:
    where = f"{function.__module__}.setup"
    if inspect.iscoroutinefunction(function):
        raise GenerateError(f"{where} is async, but is called before the event loop runs. Make it a plain function")
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        raise GenerateError(
            f"{where} must have one parameter, the manager: def setup(mgr: ctrl.Manager) -> None"
        ) from None
    return cast("Setup", function)


def _election(name: str, modules: tuple[ModuleType, ...]) -> LeaderElection | Sharding | None:
    from ctrlruntime.ownership.options import Sharding

    options: tuple[type[Any], ...] = (Sharding,)
    if "ctrlruntime.leaderelection.options" in sys.modules:  # else nothing can have made one
        from ctrlruntime.leaderelection import LeaderElection

        options = (Sharding, LeaderElection)
    values = [value for module in modules for value in vars(module).values() if isinstance(value, options)]
    different = {value.id: value for value in values}
    if len(different) > 1:
        raise GenerateError(
            f"{name} has several leader elections ({', '.join(sorted(different))}), and an operator has one. Keep one"
        )
    return next(iter(different.values()), None)


def _certificates(modules: tuple[ModuleType, ...]) -> tuple[SecretCertificates, ...]:
    if "ctrlruntime.webhook.secret" not in sys.modules:
        return ()
    from ctrlruntime.webhook import SecretCertificates, WebhookOptions

    found: dict[str, SecretCertificates] = {}
    for module in modules:
        for value in vars(module).values():
            secret = value.secret if isinstance(value, WebhookOptions) else value
            if isinstance(secret, SecretCertificates):
                found[f"{secret.namespace}/{secret.name}"] = secret
    return tuple(found.values())
