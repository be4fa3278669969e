"""Who asks, and what is asked: the two values every decision is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ctrlruntime.apiserver.interfaces import UserIdentity
from ctrlruntime.schema.trees import Document

MASTERS: Final = "system:masters"
"""The group that may do everything."""
_NO_EXTRA: Final[Mapping[str, tuple[str, ...]]] = {}


@dataclass(frozen=True, slots=True)
class User:
    """Who asks, as the authentication found."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NO_EXTRA)


def user_info(user: UserIdentity) -> Document:
    """Return a user as UserInfo, as in reviews and webhooks."""
    info: Document = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(user.extra[key]) for key in sorted(user.extra)}
    return info


@dataclass(frozen=True, slots=True)
class AuthorizationAttributes:
    """What is asked: a verb on a resource, or (when `path` is set) on a path that is not a resource.

    As on the real server, a request for one Namespace object has that name as `namespace` too.
    """

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    is_resource: bool = False
    """Set where an access review asks about resource attributes of which `resource` may be empty."""
