"""Plain requests to an API server: the harness fills and changes it with these, and the floor is made of them.

Nothing of the libraries under test is used.
"""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml


class Bare:
    """One session on one server."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self._url = url

    async def ask(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        """Send one request and return the answer's bytes. Raises: RuntimeError when the server refuses."""
        headers = {"Content-Type": kind}
        async with self.session.request(method, self._url + path, data=body, headers=headers) as response:
            raw = await response.read()
            if response.status >= 300:
                raise RuntimeError(f"{method} {path}: {response.status} {raw[:300]!r}")
            return raw

    async def stream(self, path: str, accept: str = "application/json") -> AsyncIterator[bytes]:
        """Yield the bytes of one answer as they come."""
        timeout = aiohttp.ClientTimeout(total=None)
        async with self.session.get(self._url + path, headers={"Accept": accept}, timeout=timeout) as response:
            response.raise_for_status()
            async for chunk in response.content.iter_any():
                yield chunk


@asynccontextmanager
async def connected(kubeconfig: str) -> AsyncIterator[Bare]:
    """Open a session on the server of a kubeconfig file."""
    config = yaml.safe_load(Path(kubeconfig).read_text())  # noqa: ASYNC240 - nothing else runs yet
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    headers = {"User-Agent": "benchmark", "Accept": "application/json", "Accept-Encoding": "identity"}
    if "client-certificate-data" in user:
        load_pair(context, user["client-certificate-data"], user["client-key-data"])
    else:
        headers["Authorization"] = f"Bearer {user['token']}"
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield Bare(session, cluster["server"])


def load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    import tempfile

    with tempfile.NamedTemporaryFile() as file:  # the ssl module reads files only
        file.write(base64.b64decode(certificate) + b"\n" + base64.b64decode(key))
        file.flush()
        context.load_cert_chain(file.name)


def encoded(tree: dict[str, Any]) -> bytes:
    return json.dumps(tree, separators=(",", ":")).encode()
