"""HTTP answers: JSON (or YAML) bodies, Status failures, plain text."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from aiohttp import web
from multidict import CIMultiDict

from ctrlruntime.apiserver.encoding import decode, encode, encode_yaml
from ctrlruntime.apiserver.http.calls import Call
from ctrlruntime.errors import APIStatusError

_GZIP_OVER = 128 * 1024
_HUMANS = ("curl", "Wget", "Mozilla/5.0")


def headers_of(warnings: Iterable[str] = ()) -> CIMultiDict[str]:
    """Return the headers every API answer has."""
    headers: CIMultiDict[str] = CIMultiDict()
    headers["Cache-Control"] = "no-cache, private"
    headers["Audit-Id"] = os.urandom(16).hex()
    for warning in dict.fromkeys(warnings):
        text = warning.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        headers.add("Warning", f'299 - "{text}"')
    return headers


def answer(call: Call, body: bytes, code: int = 200, *, is_yaml: bool = False) -> web.Response:
    """Return an API object as the caller asked for it: JSON, indented JSON or YAML; compressed when it is large."""
    headers = headers_of(call.warnings)
    if is_yaml:
        headers["Content-Type"] = "application/yaml"
        return web.Response(status=code, body=encode_yaml(decode(body)), headers=headers)
    headers["Content-Type"] = "application/json"
    if _is_pretty(call):
        body = msgspec.json.format(body, indent=2)
    body += b"\n"
    if len(body) > _GZIP_OVER and "gzip" in call.headers.get("Accept-Encoding", ""):
        body = gzip.compress(body, compresslevel=1, mtime=0)
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
    return web.Response(status=code, body=body, headers=headers)


def document_answer(call: Call, document: Any, code: int = 200) -> web.Response:
    return answer(call, encode(document), code)


def _is_pretty(call: Call) -> bool:
    pretty = call.query.get("pretty")
    if pretty is not None:
        return pretty in {"1", "true"}
    return call.headers.get("User-Agent", "").startswith(_HUMANS)


def failure(error: APIStatusError, warnings: Iterable[str] = ()) -> web.Response:
    """Return the answer for a failure."""
    headers = headers_of(warnings)
    headers["Content-Type"] = "application/json"
    if error.retry_after is not None:
        headers["Retry-After"] = str(int(error.retry_after))
    return web.Response(status=error.code, body=encode(_without_details(error)) + b"\n", headers=headers)


def _without_details(error: APIStatusError) -> Mapping[str, Any]:
    """Return the Status; where the request was not understood, upstream leaves empty details out."""
    if error.code in {400, 401, 406, 413, 415} and not error.details:
        return {key: value for key, value in error.status.items() if key != "details"}
    return error.status


def text(body: str, code: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=code, text=body, content_type="text/plain", headers=headers)
