"""The webhooks a scenario brings along: one HTTPS listener, an address for each hook, canned answers, and what was received.

A hook is described by

| key | meaning |
|---|---|
| ``response`` | the `response` of the AdmissionReview; the request's uid is filled in unless given |
| ``patch`` | JSON patch operations, encoded into the response |
| ``responses`` | a list of the above, one for each call; the last repeats |
| ``answer`` | the whole body of the answer instead, a tree or a text |
| ``status`` | the HTTP status, 200 if not given |
| ``delay`` | seconds before the answer |
| ``convert`` | answer a ConversionReview: `{result: {...}}`, `{set: {path: value}}`, `{drop: [path]}` beside the new apiVersion |
"""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import ssl
import tempfile
from collections.abc import Mapping
from typing import Any, Self

from aiohttp import web

from ctrlruntime.certificates import make_authority
from scenario.variables import drop_path, split_path


class Hooks:
    """Listens on 127.0.0.1; an async context manager."""

    def __init__(self) -> None:
        self._hooks: dict[str, Mapping[str, Any]] = {}
        self.received: dict[str, list[dict[str, Any]]] = {}
        self._authority = make_authority("scenario hooks")
        self._runner: web.AppRunner | None = None
        self.url = ""

    @property
    def ca(self) -> str:
        """The CA bundle, as it stands in a webhook configuration."""
        return base64.b64encode(self._authority.pem).decode()

    async def __aenter__(self) -> Self:
        application = web.Application(client_max_size=8 * 1024 * 1024)
        application.router.add_route("*", "/{run}/{name}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls())
        await site.start()
        self.url = f"https://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def add(self, run: str, hooks: Mapping[str, Any]) -> dict[str, str]:
        """Serve the hooks of one run of a scenario; return the variables that name them."""
        variables = {"ca": self.ca}
        for name, hook in hooks.items():
            self._hooks[f"{run}/{name}"] = hook
            self.received[f"{run}/{name}"] = []
            variables[f"hook.{name}"] = f"{self.url}/{run}/{name}"
        return variables

    def _tls(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pair = self._authority.server(["127.0.0.1", "localhost"])
        with tempfile.NamedTemporaryFile() as file:
            file.write(pair.certificate + pair.key)
            file.flush()
            context.load_cert_chain(file.name)
        return context

    async def _handle(self, request: web.Request) -> web.Response:
        key = f"{request.match_info['run']}/{request.match_info['name']}"
        hook = self._hooks.get(key)
        if hook is None:
            return web.Response(status=404)
        review = json.loads(await request.read())
        calls = self.received[key]
        calls.append({"query": request.query_string, "agent": request.headers.get("User-Agent"), "body": review})
        if "responses" in hook:
            hook = hook["responses"][min(len(calls), len(hook["responses"])) - 1]
        if hook.get("delay"):
            await asyncio.sleep(hook["delay"])
        body = hook["answer"] if "answer" in hook else _answer(hook, review)
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=hook.get("status", 200), text=text, content_type="application/json")


def _answer(hook: Mapping[str, Any], review: Mapping[str, Any]) -> dict[str, Any]:
    if "convert" in hook:
        return _convert(hook["convert"] or {}, review)
    response = {"uid": review["request"]["uid"], "allowed": True, **(hook.get("response") or {})}
    if "patch" in hook:
        response["patch"] = base64.b64encode(json.dumps(hook["patch"]).encode()).decode()
        response.setdefault("patchType", "JSONPatch")
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def _convert(how: Mapping[str, Any], review: Mapping[str, Any]) -> dict[str, Any]:
    request = review["request"]
    objects = copy.deepcopy(request["objects"])
    for document in objects:
        document["apiVersion"] = request["desiredAPIVersion"]
        for path, value in (how.get("set") or {}).items():
            *parents, last = split_path(path)
            node = document
            for step in parents:
                node = node.setdefault(step, {})
            node[last] = value
        for path in how.get("drop") or ():
            drop_path(document, path)
    result = how.get("result") or {"status": "Success"}
    response: dict[str, Any] = {"uid": request["uid"], "result": result}
    if result.get("status") == "Success":
        response["convertedObjects"] = objects
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "response": {**response, **(how.get("response") or {})},
    }
