"""The failure of an object that a schema, or a type of the API server, cannot hold."""

from __future__ import annotations

from ctrlruntime.errors import BadRequest


class Undecodable(BadRequest, is_reason=False):
    """400: the server's own types cannot hold the object."""

    def __init__(
        self, why: str, message: str = "", *, applied: str = "", converted: str = "", is_conversion: bool = False
    ) -> None:
        super().__init__(message or why)
        self.why = why
        """What the decoder says, without the kind."""
        self.converted = converted or why
        """What is said of an object that is converted, which stops at the first misfit; a decoder continues."""
        self.applied = applied
        """What it says of an applied configuration. Empty if the merge finds the failure before the decoder does."""
        self.is_conversion = is_conversion
        """The version of the request can hold it, and the one in which the server works cannot."""


def undecodable(
    kind: str, version: str, why: str, *, applied: str = "", converted: str = "", is_conversion: bool = False
) -> Undecodable:
    message = f'{kind} in version "{version}" cannot be handled as a {kind}: {why}'
    return Undecodable(why, message, applied=applied, converted=converted, is_conversion=is_conversion)


__all__ = ["Undecodable", "undecodable"]
