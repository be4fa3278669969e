"""Every class of kubernetes_asyncio's models, filled at random: its wire form is the one kubernetes_asyncio sends, and nothing is lost."""

from __future__ import annotations

import inspect
import json
import re
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from ctrlruntime.api.interop import from_kubernetes_asyncio, to_kubernetes_asyncio

client = pytest.importorskip("kubernetes_asyncio.client")

LOOSE = SimpleNamespace(client_side_validation=False)
MODELS = sorted(
    (found for _, found in inspect.getmembers(client, inspect.isclass) if hasattr(found, "openapi_types")),
    key=lambda found: found.__name__,
)
WORDS = ["", "a", "ä\u2028", "1", "null", "2026-01-01T00:00:00Z", "aGk=", "$ref", "from", "self"]


class Maker:
    """Random values of the types that the models name."""

    def __init__(self, seed: str, part: float) -> None:
        self.random, self.part = Random(seed), part

    def model(self, cls: Any, depth: int) -> Any:
        chosen = {name: text for name, text in cls.openapi_types.items() if self.random.random() < self.part}
        return cls(
            **{name: self.value(text, depth + 1) for name, text in chosen.items()}, local_vars_configuration=LOOSE
        )

    def value(self, text: str, depth: int) -> Any:
        many = range(self.random.randrange(0, 3) if depth < 4 else 0)
        if match := re.fullmatch(r"list\[(.*)\]", text):
            return [self.value(match[1], depth) for _ in many]
        if match := re.fullmatch(r"dict\((?:[^,]*), (.*)\)", text):
            return {self.random.choice(WORDS): self.value(match[1], depth) for _ in many}
        if text == "datetime":
            zone = self.random.choice([UTC, timezone(timedelta(hours=5, minutes=30))])
            return datetime(2026, 1, 2, 3, 4, 5, self.random.choice([0, 1, 999999]), zone)
        if text == "object":
            return self.anything(2)
        if text in {"str", "int", "float", "bool", "bytes"}:
            return self.scalar(text)
        model = getattr(client, text, None)
        if model is None:  # their models name two classes that they do not have
            return self.scalar("str")
        # JSONSchemaProps holds itself, many times.
        return self.model(model, depth) if depth < 3 or "JSONSchema" not in text else None

    def scalar(self, text: str) -> Any:
        match text:
            case "int":
                return self.random.choice([0, 1, -1, 2**62])
            case "float":
                return self.random.choice([0.0, 1.5])
            case "bool":
                return self.random.random() < 0.5
            case _:
                return self.random.choice(WORDS)

    def anything(self, depth: int) -> Any:
        kind = self.random.randrange(8 if depth else 5)
        if kind == 5:
            return [self.anything(depth - 1) for _ in range(2)]
        if kind > 5:
            return {self.random.choice(WORDS): self.anything(depth - 1) for _ in range(2)}
        return self.scalar(["int", "float", "bool", "str", "str"][kind])


def same_moments(tree: Any) -> Any:
    """Return a tree in which moments are numbers: kubernetes_asyncio writes them with an offset, the API server in UTC."""
    if isinstance(tree, dict):
        return {key: same_moments(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [same_moments(value) for value in tree]
    if isinstance(tree, str) and re.match(r"\d{4}-\d\d-\d\dT", tree):
        return int(datetime.fromisoformat(tree).timestamp())
    return tree


class Answer:
    def __init__(self, tree: Any) -> None:
        self.data = json.dumps(tree)


@pytest.fixture(scope="module")
def api_client():
    return client.ApiClient.__new__(client.ApiClient)


def cases(cls: Any):
    for seed, part in enumerate([1.0, 0.6, 0.3]):
        yield Maker(f"{cls.__name__}-{seed}", part).model(cls, 0)


def test_all_models_are_there() -> None:
    assert len(MODELS) > 700


@pytest.mark.parametrize("letter", sorted({model.__name__[:5] for model in MODELS}))
def test_the_wire_form_is_the_one_kubernetes_asyncio_sends(api_client, letter) -> None:
    for cls in MODELS:
        if cls.__name__.startswith(letter):
            for obj in cases(cls):
                assert same_moments(from_kubernetes_asyncio(obj)) == same_moments(
                    api_client.sanitize_for_serialization(obj)
                ), cls.__name__


@pytest.mark.parametrize("letter", sorted({model.__name__[:5] for model in MODELS}))
def test_what_comes_back_is_what_was_sent(letter) -> None:
    for cls in MODELS:
        if cls.__name__.startswith(letter):
            for obj in cases(cls):
                wire = from_kubernetes_asyncio(obj)
                back = to_kubernetes_asyncio(cls, json.loads(json.dumps(wire)))
                assert from_kubernetes_asyncio(back) == wire, cls.__name__
                assert type(back) is cls
