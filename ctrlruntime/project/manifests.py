"""The manifests of an operator's package: definitions, roles and webhook configurations, as the files of a tree.

| file | made from |
|---|---|
| ``crd/bases/GROUP_PLURAL.yaml`` | the kinds defined in the package, except external ones |
| ``rbac/role.yaml`` | ``@rbac``, what ``setup`` tells the manager, the election, and a webhook certificate kept in a Secret |
| ``webhook/manifests.yaml`` | the webhooks ``setup`` registers |

`setup(mgr)` is called with a manager that never starts and reaches no cluster; it is the same function that the operator's
`__main__` calls, so roles and webhooks are those of the operator that runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ctrlruntime.api.kind import KindInfo
from ctrlruntime.api.object import Object, Unstructured, kind_of
from ctrlruntime.errors import CtrlError, GenerateError
from ctrlruntime.generate.crd import crds
from ctrlruntime.generate.options import ConversionWebhook, Document, Options, Warn, warn
from ctrlruntime.generate.rbac import (
    READ,
    ROLE_NAME,
    certificate_rules,
    check_names,
    derived_beside,
    election_role,
    event_rules,
    finalizer_rules,
    owned_rules,
    reconciled_rules,
    roles,
    watched_rules,
)
from ctrlruntime.generate.text import dump, dump_all, file_name
from ctrlruntime.generate.webhooks import Service, webhook_configurations
from ctrlruntime.manager.declarations import Declarations, Watch
from ctrlruntime.manager.manager import Manager, new_manager
from ctrlruntime.markers import RBACRule
from ctrlruntime.project.package import Package, what_failed
from ctrlruntime.rest.config import Config
from ctrlruntime.scheme import Scheme
from ctrlruntime.webhook.server import CONVERT_PATH

__all__ = ["CRD_FOLDER", "ROLE_FILE", "WEBHOOK_FILE", "Choice", "Manifests", "crds_for_tests", "manifests", "recorded"]

CRD_FOLDER: Final = "crd/bases"
ROLE_FILE: Final = "rbac/role.yaml"
WEBHOOK_FILE: Final = "webhook/manifests.yaml"

_NOWHERE: Final = "https://no-cluster.invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which manifests are made."""

    crd: bool = True
    rbac: bool = True
    webhook: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifests:
    """The documents of a package."""

    definitions: list[Document] = field(default_factory=list[Document])
    roles: list[Document] = field(default_factory=list[Document])
    webhooks: list[Document] = field(default_factory=list[Document])
    is_sharded: bool = False
    """Whether a controller has `sharded=True`."""

    def files(self) -> dict[str, str]:
        """Return the text of each file, by its path in the tree."""
        found = {f"{CRD_FOLDER}/{file_name(each)}": dump(each) for each in self.definitions}
        if self.roles:
            found[ROLE_FILE] = dump_all(self.roles)
        if self.webhooks:
            found[WEBHOOK_FILE] = dump_all(self.webhooks)
        return found


def manifests(
    package: Package,
    *,
    choice: Choice | None = None,
    role_name: str = ROLE_NAME,
    options: Options | None = None,
    service: Service | None = None,
    namespaces: Sequence[str] = (),
    warn: Warn = warn,
) -> Manifests:
    """Return the manifests of a package.

    `service`: the Service in front of the webhook server; `namespaces`: those the operator is restricted to, so that what it
    needs of namespaced kinds becomes a Role in each; `warn` takes the text of each warning. Raises: GenerateError, of one line, for what
    cannot become a manifest and for what `setup` raises; ConfigError for a webhook no API server takes.
    """
    choice, service = choice or Choice(), service or Service()
    manager = recorded(package)
    own = [cls for cls in package.kinds if not kind_of(cls).external]
    if choice.crd:
        _refuse_half_external(package, own)
    return Manifests(
        definitions=_definitions(package, own, manager, service, options, warn) if choice.crd else [],
        roles=_roles(package, manager, role_name, namespaces, warn) if choice.rbac else [],
        webhooks=_webhooks(manager, service) if choice.webhook else [],
        is_sharded=manager.declarations.is_sharded,
    )


def crds_for_tests(package: Package) -> list[Document]:
    """Return the CRDs of all kinds of a package, external ones included. Install them on test servers only.

    Raises: GenerateError.
    """
    return _definitions(package, package.kinds, recorded(package), Service(), None, lambda _text: None)


def recorded(package: Package) -> Manager:
    """Return a manager that connects to no cluster, after the package's `setup` was called. Raises: GenerateError."""
    try:
        scheme = Scheme(*package.kinds)
    except (ValueError, CtrlError) as error:
        raise GenerateError(f"{package.name}: {error}") from error
    manager = new_manager(Config(host=_NOWHERE), scheme=scheme, metrics_bind_address="0")
    if package.setup is not None:
        try:
            package.setup(manager)
        except (Exception, SystemExit) as error:
            raise what_failed(f"{package.setup.__module__}.setup failed", error, package.name) from error
    return manager


# Definitions


def _definitions(
    package: Package,
    kinds: Sequence[type[Object]],
    manager: Manager,
    service: Service,
    options: Options | None,
    warn: Warn,
) -> list[Document]:
    if not kinds:
        return []
    webhook = ConversionWebhook(
        service_name=service.name, service_namespace=service.namespace, path=CONVERT_PATH, port=service.port
    )
    converted = [versions for each in manager.webhook_server.registrations for versions in each.converted]
    for versions in converted:
        _refuse_unconverted(package, versions)
        _warn_of_hub(package, versions[0], warn)
    conversions = {(versions[0].group, versions[0].kind): webhook for versions in converted}
    return crds(kinds, options=options, conversions=conversions, warn=warn)


def _refuse_half_external(package: Package, own: Sequence[type[Object]]) -> None:
    versions = {(info.group, info.kind): cls for cls in own if (info := kind_of(cls))}
    for cls in package.kinds:
        info = kind_of(cls)
        other = versions.get((info.group, info.kind))
        if info.external and other is not None:
            raise GenerateError(
                f"{cls.__module__}.{cls.__qualname__}: external is True, but not in {other.__qualname__}, another version of the kind. "
                "Set the same in all versions"
            )


def _refuse_unconverted(package: Package, converted: Sequence[KindInfo]) -> None:
    group, kind = converted[0].group, converted[0].kind
    known = {info.version for info in converted}
    for cls in package.kinds:
        info = kind_of(cls)
        if (info.group, info.kind) == (group, kind) and info.version not in known and not info.skip:
            raise GenerateError(
                f"{cls.__module__}.{cls.__qualname__}: version {info.version} of {kind} is missing in its conversion, which has "
                f"{', '.join(sorted(known))}. Add .spoke({cls.__name__}, to_hub=…, from_hub=…)"
            )


def _warn_of_hub(package: Package, hub: KindInfo, warn: Warn) -> None:
    infos = [kind_of(cls) for cls in package.kinds]
    stored = [info for info in infos if (info.group, info.kind) == (hub.group, hub.kind) and info.storage]
    if stored and stored[0].version != hub.version:
        warn(
            f"{package.name}: {hub.kind} is converted through {hub.version}, but stored as {stored[0].version}, so values that only "
            f"{hub.version} has are lost. Make {stored[0].version} the hub with `ctrl delete webhook --conversion` and "
            f"`ctrl create webhook --conversion`, or set storage=True in the class of {hub.version}"
        )


# Roles


def _roles(package: Package, manager: Manager, role_name: str, namespaces: Sequence[str], warn: Warn) -> list[Document]:
    by_hand = manager.declarations.made_by_hand()
    check_names(package.rules, warn)
    _warn_of_writes(package, by_hand, warn)
    derived = [*_derived(manager.declarations), *_read(by_hand)]
    of_cluster = {
        (info.group, info.plural)
        for watch in (*manager.declarations.watches, *by_hand)
        if (info := kind_of(watch.kind)).scope == "Cluster"
    }
    rules = derived_beside(package.rules, _kept_to(namespaces, derived, of_cluster))
    for each in package.certificates:
        rules += certificate_rules(
            each.name,
            each.namespace,
            mutating=each.mutating,
            validating=each.validating,
            definitions=each.definitions,
        )
    documents = roles(rules, role_name=role_name)
    is_sharded = manager.declarations.is_sharded
    if package.election is not None or is_sharded:
        name = "leader-election-role" if role_name == ROLE_NAME else f"{role_name}-leader-election"
        namespace = "" if package.election is None else package.election.namespace or ""
        documents.append(election_role(name, namespace, is_sharded=is_sharded))
    return documents


def _warn_of_writes(package: Package, by_hand: Sequence[Watch], warn: Warn) -> None:
    """A controller without a builder does not say what it writes; somebody has to."""
    if any(set(rule.verbs) - set(READ) for rule in package.rules):
        return
    for name in dict.fromkeys(watch.controller for watch in by_hand):
        warn(
            f"{package.name}: the controller {name} is created without a builder, so its role can only read the kinds it watches. "
            'Declare its writes with @ctrl.rbac(groups="…", resources="…", verbs="update;patch") on its reconciler'
        )


def _derived(declarations: Declarations) -> Iterator[RBACRule]:
    owners = {watch.controller for watch in declarations.watches if watch.reason == "owns"}
    for watch in declarations.watches:
        info = kind_of(watch.kind)
        match watch.reason:
            case "for":
                yield from reconciled_rules(info.group, info.plural, has_status=_has_status(watch.kind))
                if watch.controller in owners:
                    yield from finalizer_rules(info.group, info.plural)
            case "owns":
                yield from owned_rules(info.group, info.plural)
            case "watches":
                yield from watched_rules(info.group, info.plural)
    if declarations.recorders:
        yield from event_rules()


def _read(watches: Sequence[Watch]) -> Iterator[RBACRule]:
    for watch in watches:
        info = kind_of(watch.kind)
        yield from watched_rules(info.group, info.plural)


def _kept_to(
    namespaces: Sequence[str], rules: Sequence[RBACRule], of_cluster: set[tuple[str, str]]
) -> Iterator[RBACRule]:
    """The rules, those of namespaced kinds once for each namespace."""
    for rule in rules:
        named = {(group, name.partition("/")[0]) for group in rule.groups for name in rule.resources}
        if not namespaces or named & of_cluster:
            yield rule
        else:
            yield from (replace(rule, namespace=namespace) for namespace in namespaces)


def _has_status(kind: type[Object]) -> bool:
    said = kind_of(kind).status_subresource
    if said is not None:
        return said
    return issubclass(kind, Unstructured) or "status" in kind.model_fields


# Webhooks


def _webhooks(manager: Manager, service: Service) -> list[Document]:
    registrations = manager.webhook_server.registrations
    return webhook_configurations(
        (each.rule, service.client_config(each.path)) for each in registrations if each.rule is not None
    )
