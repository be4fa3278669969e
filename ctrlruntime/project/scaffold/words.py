"""What templates say about one version of a kind: names of classes, variables and modules, and the imports that bring them in."""

from __future__ import annotations

import builtins
import json
import keyword
import re
from dataclasses import dataclass
from typing import Final

from ctrlruntime.api.groups import MODULES
from ctrlruntime.api.kind import GroupVersionKind, guess_plural
from ctrlruntime.errors import ConfigError
from ctrlruntime.project.config.files import sample_file
from ctrlruntime.project.names import label
from ctrlruntime.project.settings import Resource, Settings
from ctrlruntime.scheme import Scheme

__all__ = ["Words", "is_builtin_group", "short_group", "snake"]

_RESERVED: Final = frozenset(
    {
        *("apps", "client", "config", "container", "core", "ctrl", "deployment", "errors", "events", "found", "generation"),
        *("image", "key", "mgr", "meta", "namespace", "new", "note", "old", "port", "recorder", "request", "result", "settings"),
        *("shape", "spec", "status", "template", "validate"),
        *(name for name in dir(builtins) if name.islower()),
        *keyword.softkwlist,
    }
)  # fmt: skip
"""Names that templates use, or that a variable must not hide."""

_RESERVED_WITH_FLEET: Final = frozenset(
    {
        *("act", "attempt", "conditions", "copy", "create", "deleted", "eu", "failures", "first", "fleet", "message", "names"),
        *("operator", "other", "read", "states", "testing", "us"),
    }
)  # fmt: skip
"""The same for a controller for several clusters."""

_READABLE: Final = 24
"""The maximum length of a variable's name; longer ones would break their lines."""

_LINE: Final = 120
"""Characters of a line, as pyproject.toml says."""


def snake(kind: str) -> str:
    """Return a kind as the name of a variable or function: `ShopCart` → `shop_cart`, `HTTPRoute` → `http_route`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind)
    return words.lower()


def is_builtin_group(group: str) -> bool:
    """Say whether an API group is one of Kubernetes' own."""
    return any(group == known for known, _ in MODULES)


def short_group(group: str, domain: str) -> str:
    """Return a group without the project's domain; the core group is `core`."""
    return group.removesuffix(f".{domain}") or "core"


@dataclass(frozen=True, slots=True)
class Words:
    """The words for one resource of a project."""

    settings: Settings
    resource: Resource

    # --- names ------------------------------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        return self.resource.kind

    @property
    def version(self) -> str:
        return self.resource.version

    @property
    def group(self) -> str:
        return self.resource.group

    @property
    def plural(self) -> str:
        return self.resource.plural

    @property
    def says_plural(self) -> bool:
        return self.plural != guess_plural(self.kind)

    @property
    def namespaced(self) -> bool:
        return self.resource.namespaced

    @property
    def storage(self) -> bool:
        return self.resource.storage

    @property
    def is_external(self) -> bool:
        return self.resource.is_external

    @property
    def is_imported(self) -> bool:
        """Whether its class is in the package, and was generated from a CRD."""
        return bool(self.resource.python_class)

    @property
    def is_scaffolded(self) -> bool:
        """Whether the classes of all its versions are the scaffold's, so that their fields are known."""
        key = (self.group, self.kind)
        versions = [each for each in self.settings.resources if (each.group, each.kind) == key]
        return not any(each.is_external or each.python_class for each in (self.resource, *versions))

    @property
    def in_package(self) -> bool:
        """Whether its class is in the project's package."""
        return not self.is_external or self.is_imported

    @property
    def has_status(self) -> bool:
        if not self.is_external:
            return True
        if self.resource.python_class:
            return True
        return "status" in Scheme().class_for(GroupVersionKind(self.group, self.version, self.kind)).model_fields

    @property
    def article(self) -> str:
        return "an" if self.kind[0] in "AEIOU" else "a"

    @property
    def module(self) -> str:
        return self.resource.module

    @property
    def variable(self) -> str:
        name = snake(self.kind)
        if len(name) > _READABLE:
            return "obj"
        is_reserved = name in _RESERVED or (self.fleet and name in _RESERVED_WITH_FLEET)
        return f"{name}_" if is_reserved else name

    @property
    def test(self) -> str:
        """The kind in the name of a test function."""
        return "it" if self.variable == "obj" else snake(self.kind)

    # --- modules ----------------------------------------------------------------------------------------------------------

    @property
    def group_package(self) -> str:
        """The name of the group's package in a project with several groups; empty in one without."""
        if not self.settings.multigroup:
            return ""
        name = re.sub(r"[^a-z0-9]", "_", short_group(self.group, self.settings.domain))
        return f"{name}_" if keyword.iskeyword(name) or name[0].isdigit() else name

    def _dotted(self, *parts: str) -> str:
        return ".".join(part for part in (self.settings.package, *parts) if part)

    @property
    def api_package(self) -> str:
        return self._dotted("api", self.group_package, self.version)

    @property
    def api_module(self) -> str:
        return f"{self.api_package}.{self.module}"

    @property
    def controller_module(self) -> str:
        return self._dotted("controllers", self.group_package, self.module)

    @property
    def webhook_module(self) -> str:
        return self._dotted("webhooks", self.group_package, self.version, self.module)

    @property
    def test_stem(self) -> str:
        """How the names of its test files begin."""
        return "_".join(part for part in ("test", self.group_package, self.module) if part)

    # --- classes ----------------------------------------------------------------------------------------------------------

    @property
    def _builtin(self) -> tuple[str, str]:
        """The package and the name of the module with a kind of Kubernetes. Raises: ConfigError when it is none."""
        module = MODULES.get((self.group, self.version))
        if module is None:
            raise ConfigError(
                f"{self.group}/{self.version} {self.resource.kind} is external and not built in, so no class can be "
                "imported. Generate one with `ctrl import`, and set python-class in the settings of the project"
            )
        package, _, version = module.rpartition(".")
        return package, version

    @property
    def cls(self) -> str:
        """The class, as code names it."""
        if self.resource.python_class:
            return self.resource.python_class.rpartition(".")[2]
        if not self.is_external:
            return self.kind
        return f"{self._builtin[0].rpartition('.')[2]}.{self.kind}"

    @property
    def class_import(self) -> str:
        if self.resource.python_class:
            module, _, name = self.resource.python_class.rpartition(".")
            return f"from {module} import {name}"
        if not self.is_external:
            return f"from {self.api_module} import {self.kind}"
        package, version = self._builtin
        parent, _, name = package.rpartition(".")
        newest = max(each for group, each in MODULES if group == self.group)
        if version == newest:  # what the package itself has
            return f"from {parent} import {name}"
        return f"from {package} import {version} as {name}"

    @property
    def named(self) -> str:
        """The call that names the controller; empty if the name is the kind's."""
        if not self.settings.multigroup:
            return ""
        return f'.named("{label(short_group(self.group, self.settings.domain))}-{self.module}")'

    # --- webhooks ---------------------------------------------------------------------------------------------------------

    @property
    def defaulting(self) -> bool:
        return self.resource.defaulting

    @property
    def validation(self) -> bool:
        return self.resource.validation

    @property
    def defaulter(self) -> str:
        """The arguments of `with_defaulter`."""
        return self._hook("Defaulter", self.resource.defaulting_path)

    @property
    def validator(self) -> str:
        """The arguments of `with_validator`."""
        return self._hook("Validator", self.resource.validation_path)

    def _hook(self, name: str, path: str) -> str:
        return f"{self.kind}{name}()" + (f", path={json.dumps(path)}" if path else "")

    @property
    def spokes(self) -> tuple[str, ...]:
        return self.resource.spokes

    @property
    def webhook_imports(self) -> list[str]:
        if not self.spokes:
            return [self.class_import]
        parts = f", {self.kind}Spec, {self.kind}Status" if self.is_scaffolded else ""
        lines = [(self.api_module, f"{self.class_import}{parts}")]
        for spoke in self.spokes:
            package = self._dotted("api", self.group_package, spoke)
            lines.append((package, f"from {package} import {self.module} as {spoke}"))
        return [line for _, line in sorted(lines, key=lambda line: _natural(line[0]))]

    @property
    def property_names(self) -> str:
        """What its test takes from `ctrlruntime.testing.properties`."""
        taken = {
            "check_defaulting": self.defaulting,
            "check_round_trips": bool(self.spokes),
            "check_validation": self.validation,
        }
        return ", ".join(name for name, is_taken in taken.items() if is_taken)

    @property
    def sample(self) -> str:
        """The name of the file with its sample; empty if nothing is known of its fields, so that the sample may be incomplete."""
        return sample_file(self.resource, self.settings) if self.is_scaffolded else ""

    @property
    def webhook_import(self) -> str:
        """The statement that imports what its test takes from the module with the webhooks."""
        taken = {
            "CONVERSION": bool(self.spokes),
            f"{self.kind}Defaulter": self.defaulting,
            f"{self.kind}Validator": self.validation,
            "setup_with_manager": bool(self.sample),
        }
        names = [name for name, is_taken in taken.items() if is_taken]
        line = f"from {self.webhook_module} import {', '.join(names)}"
        if len(line) <= _LINE:
            return line
        return f"from {self.webhook_module} import (\n" + "".join(f"    {name},\n" for name in names) + ")"

    # --- hub and spoke ----------------------------------------------------------------------------------------------------

    @property
    def fleet(self) -> bool:
        return self.resource.fleet

    # --- deploy-image -----------------------------------------------------------------------------------------------------

    @property
    def image(self) -> str:
        return self.resource.image

    @property
    def image_container_command(self) -> tuple[str, ...]:
        return self.resource.image_container_command

    @property
    def image_container_port(self) -> int:
        return self.resource.image_container_port

    @property
    def run_as_user(self) -> int:
        return self.resource.run_as_user

    @property
    def container(self) -> str:
        return self.module

    # --- arguments --------------------------------------------------------------------------------------------------------

    def rbac(self, subresource: str, verbs: str) -> str:
        """Return the arguments of `@ctrl.rbac` for its own kind."""
        return self.rbac_of(self.group, f"{self.plural}{subresource}", verbs)

    def rbac_of(self, group: str, resources: str, verbs: str) -> str:
        """Return the arguments of `@ctrl.rbac`. In a project that keeps to its namespace the rule does so, too."""
        said = {"groups": group, "resources": resources, "verbs": verbs}
        if self.settings.namespaced and self.namespaced:
            said["namespace"] = self.settings.namespace
        arguments = [f"{name}={json.dumps(value)}" for name, value in said.items()]
        line = ", ".join(arguments)
        if len(f"@ctrl.rbac({line})") <= _LINE:
            return line
        return "".join(f"\n    {argument}," for argument in arguments) + "\n"

    @property
    def metadata(self) -> str:
        """The arguments of an object's metadata in a test."""
        return 'name="sample", namespace=namespace' if self.namespaced else 'name="sample"'

    @property
    def namespace_parameter(self) -> str:
        return ", namespace: str" if self.namespaced else ""

    @property
    def namespace_argument(self) -> str:
        return "namespace" if self.namespaced else '""'


def _natural(text: str) -> list[tuple[bool, int, str]]:
    """Order as import sorters do: numbers by their value."""
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", text)]
