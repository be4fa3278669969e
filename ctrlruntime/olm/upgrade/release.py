"""The changes between the ClusterServiceVersions of two releases: the upgrade path, permissions and requirements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ctrlruntime.api import rbac
from ctrlruntime.olm.api import ClusterServiceVersion, Permissions
from ctrlruntime.olm.release import SKIP_RANGE, Release
from ctrlruntime.olm.semver import parse, parse_range
from ctrlruntime.olm.upgrade.change import Change, Code

__all__ = ["release_changes"]

_CLUSTER, _NAMESPACE = "clusterPermissions", "permissions"
_ANY: Final = "*"


def release_changes(old: Release, new: Release) -> Iterator[Change]:
    """Yield the changes from one release to the next, except for those of CRDs."""
    if old.package != new.package:
        yield Change(code=Code.PACKAGE_CHANGED, was=old.package, now=new.package)
    if old.name == new.name:
        yield Change(code=Code.NAME_NOT_CHANGED, path="metadata.name", was=old.name, now=new.name)
    if not old.order < new.order:
        is_build = old.version == new.version and bool(old.csv.spec.release or new.csv.spec.release)
        path = "spec.release" if is_build else "spec.version"
        yield Change(code=Code.VERSION_NOT_HIGHER, path=path, was=old.label, now=new.label)
    if not _reaches(old, new):
        yield Change(code=Code.NOT_REACHED, path="spec.replaces", was=old.name, now=new.csv.spec.replaces or None)
    for channel in sorted(set(old.bundle.channels) - set(new.bundle.channels)):
        yield Change(code=Code.CHANNEL_LEFT, was=channel)
    yield from _modes(old.csv, new.csv)
    yield from _kubernetes(old.csv, new.csv)
    yield from _requirements(old.csv, new.csv)
    yield from _permissions(old.csv, new.csv)


def _reaches(old: Release, new: Release) -> bool:
    """Tell whether OLM upgrades from one to the other in one step."""
    spec = new.csv.spec
    if old.name in {spec.replaces, *spec.skips}:
        return True
    skipped = parse_range(new.csv.metadata.annotations.get(SKIP_RANGE, ""))
    return skipped is not None and old.version in skipped


def _modes(old: ClusterServiceVersion, new: ClusterServiceVersion) -> Iterator[Change]:
    was, now = ({mode.type for mode in each.spec.install_modes if mode.supported} for each in (old, new))
    for mode in sorted(was - now):
        yield Change(code=Code.MODE_REMOVED, path="spec.installModes", was=mode)
    for mode in sorted(now - was):
        yield Change(code=Code.MODE_ADDED, path="spec.installModes", now=mode)


def _kubernetes(old: ClusterServiceVersion, new: ClusterServiceVersion) -> Iterator[Change]:
    was, now = old.spec.min_kube_version, new.spec.min_kube_version
    before, after = parse(was), parse(now)
    if after is not None and (before is None or before < after):
        yield Change(code=Code.KUBERNETES_RAISED, path="spec.minKubeVersion", was=was or None, now=now)


def _requirements(old: ClusterServiceVersion, new: ClusterServiceVersion) -> Iterator[Change]:
    was, now = (
        {
            *((kind.kind, kind.version, kind.name) for kind in each.spec.customresourcedefinitions.required),
            *((api.kind, api.version, f"{api.name}.{api.group}") for api in each.spec.apiservicedefinitions.required),
        }
        for each in (old, new)
    )
    for kind, version, name in sorted(now - was):
        yield Change(code=Code.REQUIREMENT_ADDED, path=name, now=f"{kind} {version}")


# Permissions


class _Grant(NamedTuple):
    """A verb on a resource, as a role grants it."""

    scope: str
    account: str
    group: str
    resource: str
    """The path, for what is not a resource."""

    name: str
    """Empty for all."""

    verb: str

    def covers(self, other: _Grant) -> bool:
        return (
            self.account == other.account
            and self.scope in {_CLUSTER, other.scope}
            and self.name in {"", other.name}
            and all(
                mine in {_ANY, theirs}
                for mine, theirs in zip(self[2:4] + self[5:], other[2:4] + other[5:], strict=True)
            )
        )

    @property
    def subject(self) -> str:
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.scope} of {self.account}: {what}{f' {self.name}' if self.name else ''}"


def _permissions(old: ClusterServiceVersion, new: ClusterServiceVersion) -> Iterator[Change]:
    had = list(_grants(old))
    more: defaultdict[str, list[str]] = defaultdict(list)
    for grant in _grants(new):
        if not any(each.covers(grant) for each in had):
            more[grant.subject].append(grant.verb)
    for subject in sorted(more):
        yield Change(code=Code.PERMISSIONS_GROWN, path=subject, now=", ".join(dict.fromkeys(more[subject])))


def _grants(csv: ClusterServiceVersion) -> Iterator[_Grant]:
    spec = csv.spec.install.spec
    if spec is None:
        return
    listed: Sequence[tuple[str, list[Permissions]]] = (
        (_CLUSTER, spec.cluster_permissions),
        (_NAMESPACE, spec.permissions),
    )
    for scope, several in listed:
        for each in several:
            for rule in each.rules:
                yield from (_Grant(scope, each.service_account_name, *parts) for parts in _parts(rule))


def _parts(rule: rbac.PolicyRule) -> Iterator[tuple[str, str, str, str]]:
    for verb in rule.verbs or ():
        yield from (("", path, "", verb) for path in rule.non_resource_urls or ())
        for group in rule.api_groups or ():
            for resource in rule.resources or ():
                yield from ((group, resource, name, verb) for name in rule.resource_names or ("",))
