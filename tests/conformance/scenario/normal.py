"""Answers made comparable: what differs by nature becomes its name, everything else stays.

| in the answer | becomes |
|---|---|
| uids | ``uid-1``, ``uid-2``… in order of appearance |
| resource versions of objects | ``rv-1``… in their order within the scenario; of lists and bookmarks the last object version they include, ``>=rv-2`` |
| times | ``<time>``, ``<microtime>`` |
| generated names, hashes, addresses, ports, tokens, ages | ``<…>``; generated ones numbered |
| the scenario's namespace and group | ``$(ns)``, ``$(group)`` |

A text that the scenario itself sends is not a nature of the server and stays as it is.
"""

from __future__ import annotations

import base64
import bisect
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(?:Z|[+-]\d\d:?\d\d)(?: UTC)?")
_ADDRESS = re.compile(r"\b(?:127\.0\.0\.1|localhost|\[::1\]):\d{4,5}\b")
_CLUSTER_IP = re.compile(r"\b10\.(?:0|244)\.\d{1,3}\.\d{1,3}\b")
_JWT = re.compile(r"\beyJ[\w-]{10,}\.[\w-]+\.[\w-]+")
_DIGEST = re.compile(r"\b[0-9A-Fa-f]{128}\b")
_EVENT_NAME = re.compile(r"\.[0-9a-f]{15,16}\b")
_NODE_PORT = re.compile(r":(?:30|31|32)\d{3}(?=/(?:TCP|UDP|SCTP)\b)")
_AGE = re.compile(r"^(?:\d+[smhdy]){1,2}$")
_AGE_IN_LINE = re.compile(r"(?<=\s)(?:\d+[smhdy]){1,2}(?: +|$)")
_VERSIONS = (
    (re.compile(r"too old resource version: \d+ \(\d+\)"), "too old resource version: <rv> (<rv>)"),
    (re.compile(r"(ResourceVersion in (?:the )?precondition:? \(?)\d+"), r"\1<rv>"),
    (re.compile(r"(ResourceVersion in (?:object meta|record):? \(?)\d+"), r"\1<rv>"),
    (re.compile(r"current: \d+"), "current: <rv>"),
    (re.compile(r'(resourceVersion: Invalid value: )"?\d{2,}"?'), r"\1<rv>"),
)
_PATCHED = re.compile(r'(Invalid value: )"\{\\"(?:apiVersion|kind).*\}"(?=: )', re.DOTALL)
_SUFFIX = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}\Z")
_LISTS = re.compile(r"(List|^Table|^Status)$")
_DEFAULT_HEADERS = {"content-type": "application/json", "cache-control": "no-cache, private", "audit-id": "<uuid>"}
_HEADERS = ("content-type", "cache-control", "audit-id", "warning", "retry-after", "location", "etag", "allow", "vary", "content-encoding",
            "expires", "last-modified", "www-authenticate", "x-content-type-options")  # fmt: skip
_PRESENT = {"etag": "<etag>", "expires": "<date>", "last-modified": "<date>"}


def _an_age(found: re.Match[str]) -> str:
    """Return the text for an age: the spaces that fill its column depend on its width, `9s` or `10s`."""
    return "<age>   " if found.group().endswith(" ") else "<age>"


class Normalizer:
    """Normalises the answers of one run. `own` maps texts of this run to their names; `sent` is all that the scenario says."""

    def __init__(self, own: Mapping[str, str], sent: str) -> None:
        self._own = dict(own)
        self._sent = sent
        self._uids: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._longest: list[tuple[str, str]] = []  # what `_names` has, the longest text first
        self._texts: dict[str, str] = {}  # as they have become: most come many times
        self._versions: list[int] = []

    def apply(self, answers: list[Any]) -> list[Any]:
        """Return the answers as they are compared and kept."""
        versions: set[int] = set()
        for document in _objects(answers):
            self._learn(document, versions)
        self._versions = sorted(versions)
        self._names = {**self._own, **self._names}
        self._longest = sorted(self._names.items(), key=lambda pair: len(pair[0]), reverse=True)
        return [self._answer(answer) for answer in answers]

    def _learn(self, document: Mapping[str, Any], versions: set[int]) -> None:
        metadata = document["metadata"]
        version = metadata.get("resourceVersion")
        if (
            isinstance(version, str)
            and version.isdigit()
            and version != "0"
            and not _LISTS.search(str(document.get("kind", "")))
            and _is_object(metadata)
        ):
            versions.add(int(version))
        for key in ("pod-template-hash", "controller-revision-hash"):
            value = (metadata.get("labels") or {}).get(key)
            if value and value not in self._sent:
                value = value.rpartition("-")[2]
                self._names.setdefault(
                    value, f"<hash-{sum(name.startswith('<hash') for name in self._names.values()) + 1}>"
                )
        base, name = metadata.get("generateName"), metadata.get("name")
        if document.get("kind") == "Status":  # of an object that got a name and was refused
            name = str((document.get("details") or {}).get("name", ""))
            base = name[:-5] if len(name) > 5 and not name.startswith("$") and f'"{name[:-5]}"' in self._sent else None
        if base and name and name not in self._sent and name.startswith(base[:58]) and _SUFFIX.search(name):
            number = sum(name.startswith("<generated") for name in self._names.values()) + 1
            self._names.setdefault(name[-5:], f"<generated-{number}>")

    def _answer(self, answer: Any) -> Any:
        if isinstance(answer, dict) and "headers" in answer:
            answer = {**answer, "headers": self._headers(answer["headers"])}
            if not answer["headers"]:
                del answer["headers"]
        if isinstance(answer, dict) and "out" in answer:
            answer = {**answer, "out": [_AGE_IN_LINE.sub(_an_age, line) for line in answer["out"]]}
        return self._node(answer)

    def _headers(self, headers: Mapping[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {name: _PRESENT.get(name, headers[name]) for name in _HEADERS if name in headers}
        if _UUID.fullmatch(str(kept.get("audit-id", ""))):
            kept["audit-id"] = "<uuid>"
        differing = {name: value for name, value in kept.items() if _DEFAULT_HEADERS.get(name) != value}
        return {**differing, **{name: None for name in _DEFAULT_HEADERS if name not in kept}}

    def _node(self, node: Any, key: str = "") -> Any:
        match node:
            case dict():
                made = {self._text(name): self._node(value, name) for name, value in node.items()}
                if isinstance(node.get("metadata"), dict):
                    self._metadata(node, made)
                if node.get("kind") == "Table":
                    self._cells(made)
                return made
            case list():
                if key == "managedFields":  # their order is one of seconds; `order: true` looks at it
                    node = sorted(node, key=_owner)
                return [self._node(item, key) for item in node]
            case str():
                return self._special(node, key) or self._text(node)
            case int() if key in {"nodePort", "healthCheckNodePort"} and str(node) not in self._sent:
                return "<port>"
            case _:
                return node

    def _metadata(self, node: Mapping[str, Any], made: dict[str, Any]) -> None:
        metadata = node["metadata"]
        version = metadata.get("resourceVersion")
        if not isinstance(version, str) or not version.isdigit() or version == "0":
            return
        place = bisect.bisect_right(self._versions, int(version))
        is_list = _LISTS.search(str(node.get("kind", ""))) or not _is_object(metadata)
        is_known = not is_list and int(version) in self._versions
        made["metadata"]["resourceVersion"] = f"rv-{place}" if is_known else f">=rv-{place}"

    @staticmethod
    def _cells(made: dict[str, Any]) -> None:
        for row in made.get("rows") or ():
            row["cells"] = [
                "<age>" if isinstance(cell, str) and _AGE.match(cell) else cell for cell in row.get("cells") or ()
            ]

    def _special(self, text: str, key: str) -> str:
        if key == "storageVersionHash":
            return "<hash>"
        if key in {"caBundle", "ca.crt"} and text not in self._sent and "$(ca)" not in self._names.get(text, ""):
            return "<ca>"
        if key == "continue" and text:
            return self._continue(text)
        return ""

    def _continue(self, token: str) -> str:
        try:
            value = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        except ValueError:
            return token
        if value.get("rv", 0) > 0:
            value["rv"] = "<rv>"
        return self._text(json.dumps(value))

    def _text(self, text: Any) -> Any:
        if not isinstance(text, str):
            return text
        if len(text) < 4:
            return text
        if text not in self._texts:
            self._texts[text] = self._replaced(text)
        return self._texts[text]

    def _replaced(self, text: str) -> str:
        for own, name in self._longest:
            text = text.replace(own, name)
        if text.isalpha():
            return text  # what follows has digits or signs
        text = _PATCHED.sub(r"\1<object>", text)
        text = _UUID.sub(self._uid, text)
        text = _TIME.sub(self._time, text)
        for pattern, by in _VERSIONS:
            text = pattern.sub(by, text)
        text = _ADDRESS.sub(lambda match: self._unless_sent(match, "<address>"), text)
        text = _CLUSTER_IP.sub(lambda match: self._unless_sent(match, "<ip>"), text)
        text = _NODE_PORT.sub(lambda match: self._unless_sent(match, ":<port>"), text)
        text = _EVENT_NAME.sub(".<event>", text)
        text = _DIGEST.sub("<digest>", text)
        return _JWT.sub("<token>", text)

    def _uid(self, match: re.Match[str]) -> str:
        uid = match[0]
        if uid in self._sent:
            return uid
        return self._uids.setdefault(uid, f"uid-{len(self._uids) + 1}")

    def _time(self, match: re.Match[str]) -> str:
        return self._unless_sent(match, "<microtime>" if match[1] else "<time>")

    def _unless_sent(self, match: re.Match[str], name: str) -> str:
        return match[0] if match[0] in self._sent else name


def _owner(entry: Any) -> tuple[str, ...]:
    return tuple(str(entry.get(key, "")) for key in ("operation", "manager", "subresource", "apiVersion"))


def _is_object(metadata: Mapping[str, Any]) -> bool:
    return "name" in metadata or "uid" in metadata


def _objects(node: Any) -> Iterator[Mapping[str, Any]]:
    """Yield what has metadata, in order."""
    if isinstance(node, dict):
        if isinstance(node.get("metadata"), dict):
            yield node
        for value in node.values():
            yield from _objects(value)
    elif isinstance(node, list):
        for item in node:
            yield from _objects(item)
