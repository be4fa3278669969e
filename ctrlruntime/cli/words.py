"""Options that take several words in one text."""

from __future__ import annotations

import click

__all__ = ["words", "words_of"]


def words(_context: click.Context, _option: click.Parameter, text: str | None) -> list[str] | None:
    """Return the words of an option, as its callback; None when it was not given."""
    return None if text is None else words_of(text)


def words_of(text: str) -> list[str]:
    """Return the values between commas, without blanks around them."""
    return [word.strip() for word in text.split(",") if word.strip()]
