"""Bytes in and out: JSON and YAML bodies become trees, trees become JSON, in kube-apiserver's conventions.

The rooms above hand over request bodies and get trees with a list of duplicate keys; what they store they encode here, once.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from typing import Any, TypeAlias

import msgspec

from ctrlruntime.apiserver.interfaces import Document

_KEY = re.compile(rb'"\s*:')
_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()
_sorting_encoder = msgspec.json.Encoder(order="sorted")

Pairs: TypeAlias = list[tuple[str, Any]]


class Metadata(msgspec.Struct, gc=False):
    """The part of an object that a metadata-only view needs, cut out and not decoded."""

    metadata: msgspec.Raw = msgspec.Raw(b"{}")


_metadata_decoder = msgspec.json.Decoder(Metadata)


def decode(body: bytes) -> Any:
    """Return the tree of a JSON body. Raises: ValueError."""
    return _decoder.decode(body)


def encode(document: Any) -> bytes:
    return _encoder.encode(document)


def encode_sorted(document: Any) -> bytes:
    """Return the JSON with sorted keys, as kube-apiserver writes custom resources."""
    return _sorting_encoder.encode(document)


def cut_metadata(body: bytes) -> bytes:
    """Return the bytes of `.metadata` without decoding anything else."""
    return bytes(_metadata_decoder.decode(body).metadata)


def copy_tree(document: Document) -> Document:
    """Return a copy that shares nothing (a JSON round trip is several times faster than copy.deepcopy)."""
    copied: Document = _decoder.decode(_encoder.encode(document))
    return copied


def duplicate_fields(body: bytes, tree: Any) -> list[str]:
    """Return the paths of keys that a JSON body gives twice."""
    # Every key leaves one `":` in the text; only a body with more of them than keys needs the slow parse.
    if len(_KEY.findall(body)) == _count_keys(tree):
        return []
    found: list[str] = []
    _collect(json.loads(body, object_pairs_hook=_Marked), "", found)
    return found


class _Marked(dict[str, Any]):
    """An object that remembers which of its keys came twice."""

    def __init__(self, pairs: Pairs) -> None:
        super().__init__(pairs)
        counts = Counter(key for key, _ in pairs)
        self.repeated = [key for key, count in counts.items() if count > 1]


def _collect(node: Any, path: str, found: list[str]) -> None:
    if isinstance(node, _Marked):
        found.extend(f"{path}.{key}".lstrip(".") for key in node.repeated)
        for key, value in node.items():
            _collect(value, f"{path}.{key}", found)
    elif isinstance(node, list):
        for index, item in enumerate(node):
            _collect(item, f"{path}[{index}]", found)


def _count_keys(node: Any) -> int:
    if type(node) is dict:
        count = len(node)
        for value in node.values():
            if type(value) is dict or type(value) is list:
                count += _count_keys(value)
        return count
    count = 0
    if type(node) is list:
        for value in node:
            if type(value) is dict or type(value) is list:
                count += _count_keys(value)
    return count


def decode_yaml(body: bytes) -> Any:
    """Return the tree of a YAML body: dates stay strings. Raises: ValueError."""
    import yaml

    try:
        return yaml.load(body, _yaml_loader())  # noqa: S506 - the loader is a safe one
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


@cache
def _yaml_loader() -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """The safe loader, without turning dates into objects that JSON does not have."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    # go-yaml v2 reads y and n as booleans too.
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]\Z"), list("yYnN"))
    Loader.bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}
    return Loader


def encode_yaml(document: Any) -> bytes:
    import yaml

    return yaml.safe_dump(document, default_flow_style=False, sort_keys=True).encode()
