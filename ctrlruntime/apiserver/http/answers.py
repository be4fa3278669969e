"""HTTP answers: JSON (or YAML) bodies, Status failures, plain text."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from aiohttp import web
from multidict import CIMultiDict

from ctrlruntime.apiserver.encoding import decode, encode_yaml
from ctrlruntime.apiserver.http.calls import Call
from ctrlruntime.apiserver.http.negotiation import plain_form
from ctrlruntime.errors import APIStatusError
from ctrlruntime.schema.trees import encode

_GZIP_OVER = 128 * 1024
_WARNINGS, _WARNING = 4096, 256
"""Characters of all warnings together, and of one once that is too much."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_WITHOUT_DETAILS = frozenset({400, 401, 406, 410, 413, 415})
_WITH_DETAILS = ("406:", "415:")  # said by the generic handlers, which always give details
_HUMANS = ("curl", "Wget", "Mozilla/5.0")


def headers_of(warnings: Iterable[str] = ()) -> CIMultiDict[str]:
    """Return the headers every API answer has."""
    headers: CIMultiDict[str] = CIMultiDict()
    headers["Cache-Control"] = "no-cache, private"
    headers["Audit-Id"] = _uuid()
    if warnings:
        add_warnings(headers, warnings)
    return headers


def add_warnings(headers: CIMultiDict[str], warnings: Iterable[str]) -> None:
    for warning in fitting(warnings):
        text = warning.replace("\\", "\\\\").replace('"', '\\"')
        headers.add("Warning", f'299 - "{text}"')


def _uuid() -> str:
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def fitting(warnings: Iterable[str]) -> list[str]:
    """Return the warnings that a header can have, each once (recorder in apiserver's endpoints/filters/warning.go).

    Once they are too much together each is cut: those so far all stay, and others follow while there is room.
    """
    seen: list[str] = []
    kept: list[str] = []
    length, cuts = 0, False
    for text in dict.fromkeys(filter(None, warnings)):
        if cuts and length >= _WARNINGS:
            break
        seen.append(text)
        kept += _writable(text[:_WARNING] if cuts else text)
        length = sum(map(len, kept))
        if not cuts and length > _WARNINGS:
            cuts, kept = True, [part for each in seen for part in _writable(each[:_WARNING])]
            length = sum(map(len, kept))
    return kept


def _writable(text: str) -> list[str]:
    return [] if _CONTROL.search(text) else [text]


def answer(call: Call, body: bytes, code: int = 200, *, is_yaml: bool = False) -> web.Response:
    """Return an API object as the caller asked for it: JSON, indented JSON or YAML; compressed when it is large."""
    headers = headers_of(call.warnings)
    if is_yaml:
        headers["Content-Type"] = "application/yaml"
        return web.Response(status=code, body=encode_yaml(decode(body)), headers=headers)
    headers["Content-Type"] = "application/json"
    if _is_pretty(call):
        body = msgspec.json.format(body, indent=2)
    else:
        body += b"\n"
    if len(body) > _GZIP_OVER and _takes_gzip(call.headers.get("Accept-Encoding", "")):
        body = gzip.compress(body, compresslevel=1, mtime=0)
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
    return web.Response(status=code, body=body, headers=headers)


def _takes_gzip(accepted: str) -> bool:
    # A preference (`gzip;q=1`) is not understood upstream either.
    return any(entry.strip() == "gzip" for entry in accepted.split(","))


def document_answer(call: Call, document: Any, code: int = 200) -> web.Response:
    return answer(call, encode(document), code)


def _is_pretty(call: Call) -> bool:
    pretty = call.query.get("pretty")
    if pretty is not None:
        return pretty in {"1", "true"}
    return call.headers.get("User-Agent", "").startswith(_HUMANS)


def failure(error: APIStatusError, call: Call | None = None) -> web.Response:
    """Return the answer for a failure, in the form the caller asked for where it is known."""
    headers = headers_of(call.warnings if call is not None else ())
    headers["Content-Type"] = "application/json"
    if error.retry_after is not None:
        headers["Retry-After"] = str(int(error.retry_after))
    status = failure_status(error)
    form = plain_form(call.headers.get("Accept", "")) if call is not None else "json"
    if form == "yaml":
        headers["Content-Type"] = "application/yaml"
        return web.Response(status=error.code, body=encode_yaml(status), headers=headers)
    # Where no form fits, a failure is written as it is, and indented (WriteRawJSON in apiserver's responsewriters).
    is_indented = form is None or (call is not None and _is_pretty(call))
    body = msgspec.json.format(encode(status), indent=2) if is_indented else encode(status) + b"\n"
    return web.Response(status=error.code, body=body, headers=headers)


def failure_status(error: APIStatusError) -> Mapping[str, Any]:
    """Return the Status; where the request was not understood, upstream leaves empty details out."""
    status = error.status
    if error.details:
        causes = error.details.get("causes")
        if causes and any(cause.get("field") == "" for cause in causes):
            causes = [{key: value for key, value in cause.items() if value} for cause in causes]
            return {**status, "details": {**error.details, "causes": causes}}
        return status
    if error.code in _WITHOUT_DETAILS and not str(error.status.get("message", "")).startswith(_WITH_DETAILS):
        return {key: value for key, value in status.items() if key != "details"}
    return status


def text(body: str, code: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return a plain text, which no browser may take for anything else."""
    every = headers_of()
    every["X-Content-Type-Options"] = "nosniff"
    every.update(headers or {})
    return web.Response(status=code, text=body, content_type="text/plain", headers=every)
