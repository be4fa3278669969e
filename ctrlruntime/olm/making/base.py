"""The base of a bundle, a file of the user: created if it is missing, and changed where values are set."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, cast

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_one, read_text
from ctrlruntime.generate.options import Document
from ctrlruntime.olm import semver
from ctrlruntime.olm.making.editing import Keys, with_values
from ctrlruntime.olm.making.presentation import PLACEHOLDERS
from ctrlruntime.olm.making.sources import MANIFESTS_FOLDER
from ctrlruntime.olm.picture import is_picture, media_type_of
from ctrlruntime.olm.reference import Reference
from ctrlruntime.olm.trees import mapping, maps
from ctrlruntime.project.config.olm import base_file, base_text
from ctrlruntime.project.generated import Change
from ctrlruntime.project.settings import Settings

__all__ = ["Answers", "BaseFile", "base_of", "current_answers"]

_MOST: Final = 512 * 1024
"""The maximum bytes of an icon: half of the maximum of all compressed manifests of a bundle."""
_OPTIONS: Final = {"maintainers": "maintainer", "links": "link"}
_PICTURES: Final = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
}
_EMAIL: Final = re.compile(r"[^@\s:]+@[^@\s:]+\.[^@\s:.]+")
_URL: Final = re.compile(r"https?://[^\s/]+\S*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The user's values for the operator; None leaves a value unchanged."""

    display_name: str | None = None
    description: str | None = None
    provider: str | None = None
    provider_url: str | None = None
    keywords: Sequence[str] | None = None
    maintainers: Sequence[str] | None = None
    """Each as `name:email`."""

    links: Sequence[str] | None = None
    """Each as `name=url`."""

    icon: Path | None = None
    min_kube_version: str | None = None
    maturity: str | None = None
    capabilities: str | None = None
    categories: str | None = None
    short_description: str | None = None
    container_image: str | None = None
    repository: str | None = None
    support: str | None = None

    @property
    def is_empty(self) -> bool:
        return all(getattr(self, each.name) is None for each in fields(self))

    def values(self) -> dict[Keys, Any]:
        """Return the values by the path of each field. Raises: ConfigError for an invalid value."""
        for each in fields(self):
            _refuse_text(each.name, getattr(self, each.name))
        found: dict[Keys, Any] = {
            ("metadata", "annotations", "capabilities"): self.capabilities,
            ("metadata", "annotations", "categories"): self.categories,
            ("metadata", "annotations", "containerImage"): None
            if self.container_image is None
            else _image(self.container_image),
            ("metadata", "annotations", "description"): self.short_description,
            ("metadata", "annotations", "repository"): None if self.repository is None else _url(self.repository),
            ("metadata", "annotations", "support"): self.support,
            ("spec", "description"): self.description,
            ("spec", "displayName"): self.display_name,
            ("spec", "icon"): None if self.icon is None else [_icon(self.icon)],
            ("spec", "keywords"): None if self.keywords is None else list(self.keywords),
            ("spec", "links"): None if self.links is None else [_link(text) for text in self.links],
            ("spec", "maintainers"): None
            if self.maintainers is None
            else [_maintainer(each) for each in self.maintainers],
            ("spec", "maturity"): self.maturity,
            ("spec", "minKubeVersion"): None if self.min_kube_version is None else _version(self.min_kube_version),
            ("spec", "provider", "name"): self.provider,
            ("spec", "provider", "url"): None if self.provider_url is None else _url(self.provider_url),
        }
        return {keys: value for keys, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseFile:
    """The new base. `change` is None if it is unchanged."""

    path: Path
    change: Change | None
    is_rewritten: bool
    """It could not be edited in place: its comments are lost."""


def base_of(folder: Path, settings: Settings, answers: Answers) -> BaseFile:
    """Return the base of the project in `folder` with these answers; nothing is written.

    Raises: ConfigError for an invalid answer, and for a base that is not a ClusterServiceVersion.
    """
    path, before = _text(folder, settings)
    edited = with_values(before or base_text(settings), answers.values(), str(path))
    change = None if edited.text == before else Change(path, before, edited.text)
    return BaseFile(path=path, change=change, is_rewritten=edited.is_rewritten and "#" in (before or ""))


def current_answers(folder: Path, settings: Settings) -> Answers:
    """Return the answers that the base has now, without the scaffold's placeholders. Raises: ConfigError."""
    path, before = _text(folder, settings)
    spec: Mapping[str, Any] = _read(before or base_text(settings), path)["spec"]
    provider = mapping(spec.get("provider"))
    keywords: Any = spec.get("keywords")
    first = _read(base_text(settings), path)["spec"]
    return Answers(
        display_name=_said(spec.get("displayName")),
        description=None if spec.get("description") == first["description"] else _said(spec.get("description")),
        provider=_said(provider.get("name")),
        provider_url=_said(provider.get("url")),
        keywords=[str(each) for each in keywords] if isinstance(keywords, list) else [],
        maintainers=[
            f"{each.get('name', '')}:{each.get('email', '')}"
            for each in maps(spec.get("maintainers"))
            if not any(word in (each.get("name"), each.get("email")) for word in PLACEHOLDERS)
        ],
    )


def _text(folder: Path, settings: Settings) -> tuple[Path, str | None]:
    path = folder / MANIFESTS_FOLDER / base_file(settings)
    if not path.exists():
        return path, None
    text = read_text(path)
    _read(text, path)
    return path, text


def _read(text: str, path: Path) -> Document:
    tree = read_one(text, str(path))
    if (
        not isinstance(tree, dict)
        or tree.get("kind") != "ClusterServiceVersion"
        or not isinstance(tree.get("spec"), dict)
    ):
        raise ConfigError(
            f"{path} is not a ClusterServiceVersion with a spec. Fix it, or delete it to create a new one"
        )
    return cast("Document", tree)


def _said(value: Any) -> str | None:
    return value if isinstance(value, str) and value and value not in PLACEHOLDERS else None


# What a field can hold


def _refuse_text(name: str, value: Any) -> None:
    """Raise ConfigError for an empty answer, and for text that is not UTF-8."""
    if value is None or isinstance(value, Path):
        return
    texts: Sequence[str] = [value] if isinstance(value, str) else value
    option = f"--{_OPTIONS.get(name, name).replace('_', '-')}"
    what = name.replace("_", " ")
    if not texts or not all(text.strip() for text in texts):
        raise ConfigError(f"cannot set an empty {what}. Leave out {option} to keep the value in the base")
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            wrong = text[max(error.start - 10, 0) : error.start + 10]
            raise ConfigError(f"the {what} is not UTF-8 text, near {wrong!a}. Set the terminal to UTF-8") from error


def _image(text: str) -> str:
    Reference.of(text)
    return text


def _maintainer(text: str) -> Document:
    name, _, email = (part.strip() for part in text.rpartition(":"))
    if not name or not _EMAIL.fullmatch(email):
        raise ConfigError(f"the maintainer {text!r} must be name:email, as in 'Ada:ada@example.com'")
    return {"name": name, "email": email}


def _link(text: str) -> Document:
    name, _, url = (part.strip() for part in text.partition("="))
    if not name or not url:
        raise ConfigError(f"the link {text!r} must be name=url, as in 'Docs=https://example.com'")
    return {"name": name, "url": _url(url)}


def _url(text: str) -> str:
    if not _URL.fullmatch(text):
        raise ConfigError(f"{text!r} is not a URL. Use one that starts with https://")
    return text


def _version(text: str) -> str:
    if semver.parse(text) is None:
        raise ConfigError(f"the Kubernetes version {text!r} must be three numbers, as in 1.28.0")
    return text


def _icon(path: Path) -> Document:
    mediatype = _PICTURES.get(path.suffix.lower())
    if mediatype is None:
        raise ConfigError(f"the icon {path} must be one of {', '.join(_PICTURES)}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError.unreadable(f"the icon {path}", error) from error
    if not content:
        raise ConfigError(f"the icon {path} is empty")
    if len(content) > _MOST:
        raise ConfigError(f"the icon {path} has {len(content):,} bytes, and the maximum is {_MOST:,}. Make it smaller")
    if not is_picture(content, mediatype):
        other = media_type_of(content)
        raise ConfigError(f"the icon {path} is not {mediatype}" + (f", but {other}. Rename it" if other else ""))
    return {"base64data": base64.b64encode(content).decode("ascii"), "mediatype": mediatype}
