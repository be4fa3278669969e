"""The twins of tests/peers/crdgen/cases/plain/v1/types.go."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Literal

from cases_validation import Phase, Plain, Span
from pydantic import AnyUrl, Field

import ctrlruntime as ctrl
from ctrlruntime.markers import CEL, Int32, Int64


class ScalarsCase(Plain):
    """ScalarsCase has all scalars."""

    flag: bool
    text: str
    int_: int
    small: Int32
    large: Int64
    raw: bytes


class ListsCase(Plain):
    """ListsCase has lists."""

    texts: list[str]
    numbers: list[Int32]
    raw: list[bytes]
    rows: list[list[str]]
    spans: list[Span]
    amounts: list[ctrl.Quantity]
    maybe: tuple[Span, ...]


class MapsCase(Plain):
    """MapsCase has maps."""

    texts: dict[str, str]
    numbers: dict[str, Int64]
    lists: dict[str, list[str]]
    spans: dict[str, Span]
    maps: dict[str, dict[str, bool]]
    amounts: dict[str, ctrl.Quantity]
    phases: dict[Phase, str]


class PointersCase(Plain):
    """PointersCase has fields that may be absent."""

    text: str | None = None
    flag: bool | None = None
    small: Int32 | None = None
    span: Span | None = None
    list_: list[str] | None = None
    map_: dict[str, str] = Field(default_factory=dict)


class TimesCase(Plain):
    """TimesCase has moments and lengths of time."""

    at: ctrl.Time
    maybe: ctrl.Time | None = None
    micro: ctrl.MicroTime
    length: ctrl.Duration
    wait: ctrl.Duration | None = ctrl.Duration(seconds=90)


class QuantityCase(Plain):
    """QuantityCase has amounts."""

    memory: ctrl.Quantity = Field(description="Memory is how much.")
    cpu: ctrl.Quantity | None = ctrl.Quantity("100m")


class TextsCase(Plain):
    """TextsCase has types that are texts in JSON."""

    link: AnyUrl = Field(description="Link is one.")
    address: IPv4Address | None = Field(None, description="Address is one, too.")


@CEL("self.name != 'x'", message="the base's")
class Base(ctrl.Model):
    """Base is what others build on."""

    name: str = Field(description="Name is the base's.")
    size: int = 1


@CEL("self.extra != 'x'", message="its own")
class Built(Base):
    """Built builds on the base."""

    extra: str = Field(description="Extra is its own.")


class InlineCase(Plain):
    """InlineCase has a type that builds on another."""

    built: Built


class DocumentedCase(Plain):
    """
    DocumentedCase has descriptions of every sort.

    A second paragraph, which is so long that the writer of the text has to think about how it breaks lines at eighty columns.
    A line that follows: with a colon.

    TODO: nobody sees this.
      - a list
      - of two

    ---
    Nobody sees this either.
    """

    long: str = Field(
        description="A description that is longer than eighty columns and has no line break in it, so that it is folded."
    )
    quoted: str = Field(
        description="Has: a colon, and is longer than eighty columns, so that it is quoted and folded at the same time, isn't it?"
    )
    hash: str = Field(
        description='"Starts with a quote", # has a hash, and goes on for so long that there is a need to fold it somewhere.'
    )
    dash: str = Field(description="- looks like a list")
    word: str = Field(description="true")
    clock: str = Field(description="12:30:45")
    fence: str = Field(description="Has a fence:\n```\nTODO stays\n--- stays\n```\nand an end.")
    letters: str = Field(description="Grüße, 世界")
    smile: str = Field(
        description="Smile 😀 and a text that is long enough to be folded when it is quoted with two quotes, since it has one."
    )
    unbroken: str = Field(
        description="Supercalifragilisticexpialidociousandmuchmorethanthatsincethereisnoblankanywhereinthiswordofmine"
    )
    span: Span = Field(description="Span is a field of a type with a description.")
    other: Span
    none: str


class QuotingCase(Plain):
    """QuotingCase has texts that look like something else."""

    words: Literal[
        "", "yes", "y", "n", "on", "null", "~", "1", "1.5", "1e3", "0x1F", "0o7", "017", "1_000", "2020-01-02", "1:20",
        "true", "True", "*", "&a", "a: b", "a #b", "-", "- a", ".inf", "%", "@a", "`", " a", "a ", "{a", "[a", "!a", "|", ">",
        "a:", "?", "? a", "0b1", "+1", ".5", "5.", "NaN", ".nan", "é", "a,b", "a'b", 'a"b', "\\", "#", "'", ":", ":a", "off",
        "No", "N", "Y", "2020-01-02T03:04:05Z", "1e", "0x", "e3", "-1", "--", "---", "...", "_", "1__0", "_1", "+", "+.inf",
        "0", "00", "08", "1.", "1.e3", "190:20:30",
    ]  # fmt: skip
    others: Literal[
        "a\tb", "a\nb", "\n", "a\n", " \n", "a\n\n", " a\nb", "a \nb", "a\n b", "\u00a0", "😀", "null ", "Null", "2020-13-45",
        "2020-1-2", "2020-01-02 03:04:05", "12345678901234567890123", "0b2", "0x1g", "1e400", "-.5", "-0x1F", "a:b", "a: ",
        "http://x", "a#b", "--a", "-a", "?a", "'a'", '"a"', "a\\nb", "\u0001",
    ]  # fmt: skip


def _named(wire: str) -> str:
    return Field(validation_alias=wire, serialization_alias=wire)


class KeysCase(Plain):
    """KeysCase has names that sort in an order of their own."""

    one: str = _named("a10")
    two: str = _named("a2")
    three: str = _named("a02")
    five: str = _named("aB")
    six: str = _named("ab")
    seven: str = _named("a_b")
    eight: str = _named("a-x")
    nine: str = _named("yes")
    ten: str = _named("1")
    eleven: str = _named("true")
    twelve: str = _named("x.y/z")
    thirteen: str = _named("a100b1")
    fourteen: str = _named("a100b02")
