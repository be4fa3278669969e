"""Why a text is not an address or a network, in the words of Go's net/netip."""

from __future__ import annotations

import re
from typing import Final

ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
"""The characters that Go, and `strings.quote` of CEL, escape by name."""

_HEX: Final = re.compile("[0-9A-Fa-f]*")
_GROUPS: Final = 8
_GROUPS_BEFORE_IPV4: Final = 6


def go_quoted(text: str) -> str:
    """Return a text in double quotes, as Go's `%q` writes it."""
    return f'"{"".join(map(_shown, text))}"'


def _shown(char: str) -> str:
    if char in ESCAPES or char.isprintable():
        return ESCAPES.get(char, char)
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def why_no_address(text: str) -> str | None:
    """Return the error of netip.ParseAddr; None for an address, which may have a zone."""
    found = re.search("[.:%]", text)
    why: tuple[str, str] | None
    if found is None:
        why = ("unable to parse IP", "")
    elif found[0] == ".":
        why = _ipv4(text)
    else:
        why = _ipv6(text) if found[0] == ":" else ("missing IPv6 address", "")
    if why is None:
        return None
    at = f" (at {go_quoted(why[1])})" if why[1] else ""
    return f"ParseAddr({go_quoted(text)}): {why[0]}{at}"


def _ipv4(text: str) -> tuple[str, str] | None:
    number = ""
    dots = 0
    for index, char in enumerate(text):
        if "0" <= char <= "9":
            if number == "0":
                return "IPv4 field has octet with leading zero", ""
            number += char
            if int(number) > 255:
                return "IPv4 field has value >255", ""
        elif char != ".":
            return "unexpected character", text[index:]
        elif not number or index == len(text) - 1:
            return "IPv4 field must have at least one digit", text[index:]
        elif dots == 3:
            return "IPv4 address too long", ""
        else:
            dots += 1
            number = ""
    return ("IPv4 address too short", "") if dots < 3 else None


def _ipv6(text: str) -> tuple[str, str] | None:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        return "zone must be a non-empty string", ""
    groups, has_ellipsis = 0, rest.startswith("::")
    if has_ellipsis:
        rest = rest[2:]
    while rest and groups < _GROUPS:
        found = _HEX.match(rest)
        digits = found[0] if found else ""
        if len(digits) > 4:
            return "each group must have 4 or less digits", rest
        if not digits:
            return "each colon-separated field must have at least one digit", rest
        after = rest[len(digits) :]
        if after.startswith("."):
            if not has_ellipsis and groups != _GROUPS_BEFORE_IPV4:
                return "embedded IPv4 address must replace the final 2 fields of the address", rest
            if groups > _GROUPS_BEFORE_IPV4:
                return "too many hex fields to fit an embedded IPv4 at the end of the address", rest
            why = _ipv4(rest)
            if why is not None:
                return why
            rest, groups = "", groups + 2
            break
        groups += 1
        if not after:
            rest = ""
            break
        if after[0] != ":":
            return "unexpected character, want colon", after
        if after == ":":
            return "colon must be followed by more characters", after
        rest = after[1:]
        if rest[0] == ":":
            if has_ellipsis:
                return "multiple :: in address", rest
            has_ellipsis, rest = True, rest[1:]
    if rest:
        return "trailing garbage after address", rest
    if groups < _GROUPS:
        return None if has_ellipsis else ("address string too short", "")
    return ("the :: must expand to at least one field of zeros", "") if has_ellipsis else None


def why_no_prefix(text: str) -> str | None:
    """Return the error of netip.ParsePrefix, without its head; None for a network."""
    address, slash, bits = text.rpartition("/")
    if not slash:
        return "no '/'"
    why = why_no_address(address)
    if why is not None:
        return why
    if "%" in address:
        return "IPv6 zones cannot be present in a prefix"
    if not re.fullmatch("0|[1-9][0-9]{0,18}", bits):
        return f"bad bits after slash: {go_quoted(bits)}"
    return "prefix length out of range" if int(bits) > (128 if ":" in address else 32) else None


__all__ = ["ESCAPES", "go_quoted", "why_no_address", "why_no_prefix"]
