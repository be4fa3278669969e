"""A client for histories: random writes, and watchers that keep every frame they were sent."""

from __future__ import annotations

import base64
import json
import random
import ssl
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import yaml
from unfinished import abort

SENTINEL = "zz-end"
LABELS = ({}, {"shade": "dark"}, {"shade": "light"}, {"shade": "dark", "size": "big"})
_FINALIZER = "histories.example.com/hold"


class Client:
    """Plain requests: (code, body)."""

    def __init__(self, kubeconfig: str) -> None:
        config = yaml.safe_load(kubeconfig)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._url = cluster["server"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=authority), limit=0)
        headers = {"Authorization": f"Bearer {user['token']}"}
        self.session = aiohttp.ClientSession(connector=connector, headers=headers)

    async def ask(self, method: str, path: str, body: Any = None, kind: str = "") -> tuple[int, dict[str, Any]]:
        content = f"application/{kind}-patch+{'yaml' if kind == 'apply' else 'json'}" if kind else "application/json"
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": content}
        async with self.session.request(method, self._url + path, data=data, headers=headers) as response:
            return response.status, await response.json(content_type=None)

    async def list(self, path: str, query: str = "") -> dict[str, Any]:
        code, body = await self.ask("GET", f"{path}?{query}")
        assert code == 200, body
        return body

    async def close(self) -> None:
        await self.session.close()


@dataclass
class Watcher:
    """One watch and what it was sent; it ends when it sees the sentinel."""

    client: Client
    path: str
    query: str
    begins_with: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What its list said, where it began from one; by name."""
    start: int = 0
    frames: list[dict[str, Any]] = field(default_factory=list)

    async def run(self) -> None:
        url = f"{self.client._url}{self.path}?watch=1&{self.query}"
        async with self.client.session.get(url) as response:
            assert response.status == 200, await response.text()
            async for line in response.content:
                frame = json.loads(line)
                assert frame["type"] != "ERROR", frame
                self.frames.append(frame)
                if frame["type"] == "ADDED" and frame["object"]["metadata"]["name"] == SENTINEL:
                    abort(response)
                    return

    def replayed(self, until: int | None = None) -> dict[str, dict[str, Any]]:
        """The state that the frames lead to, by name; up to a resource version when one is given."""
        state = dict(self.begins_with)
        for frame in self.frames:
            found = frame["object"]
            version = int(found["metadata"]["resourceVersion"])
            if frame["type"] == "BOOKMARK" or (until is not None and version > until):
                continue
            if frame["type"] == "DELETED":
                assert state.pop(found["metadata"]["name"], None) is not None, f"deleted and never seen: {found}"
            else:
                assert (frame["type"] == "ADDED") != (found["metadata"]["name"] in state), f"{frame['type']} of {found}"
                state[found["metadata"]["name"]] = found
        return state

    def versions(self) -> list[int]:
        return [
            int(frame["object"]["metadata"]["resourceVersion"]) for frame in self.frames if frame["type"] != "BOOKMARK"
        ]


class Writes:
    """Random writes to a few names of one resource: most succeed, some are refused, which is as good."""

    def __init__(self, client: Client, path: str, head: dict[str, str], rng: random.Random) -> None:
        self._client = client
        self._path = path
        self._head = head
        self._rng = rng
        self._names = [f"n{number}" for number in range(6)]

    async def one(self) -> None:
        rng = self._rng
        name = rng.choice(self._names)
        kinds = ["create", "update", "merge", "json", "apply", "delete", "label", "release"]
        kind = rng.choices(kinds, [6, 3, 3, 2, 3, 3, 3, 2])[0]
        path = f"{self._path}/{name}"
        match kind:
            case "create":
                await self._client.ask("POST", self._path, self._body(name))
            case "update":
                code, body = await self._client.ask("GET", path)
                if code == 200:
                    body["data"] = {"n": str(rng.randrange(3))}
                    await self._client.ask("PUT", path, body)
            case "merge":
                await self._client.ask("PATCH", path, {"data": {rng.choice("abc"): str(rng.randrange(3))}}, "merge")
            case "json":
                await self._client.ask("PATCH", path, [{"op": "remove", "path": "/data/a"}], "json")
            case "apply":
                manager = rng.choice(["one", "two"])
                await self._client.ask("PATCH", f"{path}?fieldManager={manager}", self._body(name, held=False), "apply")
            case "label":
                await self._client.ask("PATCH", path, {"metadata": {"labels": rng.choice([None, *LABELS])}}, "merge")
            case "release":
                await self._client.ask("PATCH", path, {"metadata": {"finalizers": None}}, "merge")
            case _:
                await self._client.ask("DELETE", path)

    def _body(self, name: str, *, held: bool = True) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": name, "labels": self._rng.choice(LABELS)}
        if held and self._rng.random() < 0.3:
            metadata["finalizers"] = [_FINALIZER]
        return {**self._head, "metadata": metadata, "data": {self._rng.choice("abc"): str(self._rng.randrange(3))}}

    async def finish(self) -> None:
        """Let everything that is held go on, and write the sentinel that every selector of the watchers admits."""
        metadata = {"name": SENTINEL, "labels": LABELS[3]}
        code, body = await self._client.ask("POST", self._path, {**self._head, "metadata": metadata, "data": {}})
        assert code == 201, body


async def begin(client: Client, path: str, selector: str, rng: random.Random) -> Watcher:
    """Begin a watch the way clients do: from a list, from a list in pages, from nothing, or with the state sent first."""
    match rng.choice(["list", "pages", "now", "streamed"]):
        case "list" | "pages" as how:
            found = await client.list(path, selector + ("&limit=2" if how == "pages" else ""))
            items = {item["metadata"]["name"]: item for item in found["items"]}
            version = found["metadata"]["resourceVersion"]
            while token := found["metadata"].get("continue"):
                found = await client.list(path, f"{selector}&limit=2&continue={token}")
                items |= {item["metadata"]["name"]: item for item in found["items"]}
            query = f"{selector}&resourceVersion={version}&allowWatchBookmarks=1"
            return Watcher(client, path, query, items, int(version))
        case "now":
            return Watcher(client, path, f"{selector}&allowWatchBookmarks=1")
        case _:
            streamed = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
            return Watcher(client, path, f"{selector}&{streamed}")
