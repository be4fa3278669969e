"""Set fields: the order of the list that was read is kept, and equal sets make no difference."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from enum import StrEnum
from random import Random
from typing import Annotated, Any

import pytest
from pydantic import Field, ValidationError

from ctrlruntime.api import Model, Object, meta
from ctrlruntime.api.sets import OrderedSet
from ctrlruntime.client.patches import merge_from
from ctrlruntime.errors import DecodeError
from ctrlruntime.patch import apply_json_patch
from ctrlruntime.webhook import defaulting
from ctrlruntime.webhook.request import AdmissionRequest


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


class Tagged(Model):
    tags: set[str] = Field(default_factory=set)


class Spec(Model):
    tags: set[str] = Field(default_factory=set)
    fixed: frozenset[int] = frozenset()
    colors: set[Color] | None = None
    few: Annotated[set[str], Field(max_length=2)] = set()  # noqa: RUF012 - pydantic copies it
    many: list[set[str]] = Field(default_factory=list)
    by_name: dict[str, Tagged] = Field(default_factory=dict)


class Game(Object, group="sets.example.com", version="v1"):
    spec: Spec = Field(default_factory=Spec)


DOCUMENT: dict[str, Any] = {
    "tags": ["z", "a", "m"],
    "fixed": [3, 1, 2],
    "colors": ["red", "blue"],
    "many": [["y", "x"], ["b", "c", "a"]],
    "byName": {"one": {"tags": ["q", "p"]}},
}


@pytest.mark.parametrize(
    "copied",
    [lambda it: it, Spec.deep_copy, copy.deepcopy, copy.copy, lambda it: pickle.loads(pickle.dumps(it))],
)
def test_the_order_that_was_read_is_written(copied: Any) -> None:
    spec = copied(Spec.from_dict(DOCUMENT))

    assert spec.to_dict() == spec.to_apply_dict() == DOCUMENT
    assert (spec.tags, spec.fixed, spec.colors) == ({"a", "m", "z"}, {1, 2, 3}, {Color.RED, Color.BLUE})


def test_new_items_follow_those_that_were_read() -> None:
    spec = Spec.from_dict(DOCUMENT)
    spec.tags -= {"a"}
    spec.tags.update({"y", "b"})
    spec.fixed |= {0}

    assert (spec.to_dict()["tags"], spec.to_dict()["fixed"]) == (["z", "m", "b", "y"], [3, 1, 2, 0])


def test_a_new_set_takes_the_order_of_the_one_it_replaces() -> None:
    spec = Spec.from_dict(DOCUMENT)
    spec.tags = {"m", "z", "n"}

    assert spec.to_dict()["tags"] == ["z", "m", "n"]


def test_a_set_that_the_code_makes_is_written_in_the_same_order_by_each_process() -> None:
    program = "from test_sets import *; print(json.dumps(Spec(tags=set('hgfedcba'), many=[set('zyx')]).to_dict()))"
    written = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert [json.loads(text) for text in written] == [{"tags": list("abcdefgh"), "many": [list("xyz")]}]


def test_a_list_for_a_set_field_keeps_its_order_and_loses_duplicates() -> None:
    spec = Spec()
    spec.tags = ["b", "a", "b"]  # type: ignore[assignment]

    assert spec.to_dict() == {"tags": ["b", "a"]}
    assert Spec(tags=["b", "a"]).to_dict() == {"tags": ["b", "a"]}  # type: ignore[arg-type]


def test_limits_of_sets_hold() -> None:
    with pytest.raises(ValidationError, match="at most 2 items"):
        Spec(few={"a", "b", "c"})
    with pytest.raises(DecodeError, match=r"tags\[1\]"):
        Spec.from_dict({"tags": ["a", 1]})


def test_pydantic_dumps_a_set_as_ever() -> None:
    spec = Spec(tags={"a"}, colors={Color.RED})

    assert spec.model_dump()["tags"] == {"a"}
    assert json.loads(spec.model_dump_json())["colors"] == ["red"]
    assert type(spec.tags) is OrderedSet


def test_equal_sets_make_no_patch() -> None:
    game = Game(metadata=meta.ObjectMeta(name="a"), spec=Spec.from_dict(DOCUMENT))
    patch = merge_from(game)
    game.spec = Spec(
        tags=set("amz"), fixed=frozenset({1, 2, 3}), colors=set(Color), many=[set("xy"), set("abc")],
        by_name={"one": Tagged(tags=set("pq"))},
    )  # fmt: skip

    assert patch.data(game) == b"{}"


async def test_a_defaulter_that_changes_sets_writes_the_list_it_meant() -> None:
    random = Random(7)
    for _ in range(200):
        before = random.sample("abcdefgh", random.randint(1, 6))
        wanted = set(random.sample("abcdefgh", random.randint(1, 6)))
        in_place = random.random() < 0.5

        class Defaulter:
            def default(self, game: Game) -> None:
                if in_place:  # noqa: B023 - called in this turn
                    game.spec.tags &= wanted  # noqa: B023
                    game.spec.tags |= wanted  # noqa: B023
                else:
                    game.spec = Spec(tags=wanted)  # noqa: B023

        sent = {
            "apiVersion": "sets.example.com/v1",
            "kind": "Game",
            "metadata": {"name": "a"},
            "spec": {"tags": before},
        }
        request = AdmissionRequest(operation="CREATE", name="a", namespace="", object=json.dumps(sent).encode())
        response = await defaulting(Game, Defaulter())(request)

        result = apply_json_patch(sent, response.patches)["spec"].get("tags", [])
        assert result == [*(item for item in before if item in wanted), *sorted(wanted - set(before))]
        assert bool(response.patches) == (wanted != set(before))
