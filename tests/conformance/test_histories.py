"""What watchers are told of random writes leads each of them to the state that a list shows, whenever and however it began.

Each seed is a case of its own: the same writes every time, while the moments at which the watchers begin vary with the machine.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import pytest
from cases import seeds
from histories import Client, Watcher, Writes, begin
from pydantic import Field
from servers import LONGEST_WAIT

from ctrlruntime.api.object import Object
from ctrlruntime.cache.cache import Cache, running
from ctrlruntime.cache.options import CacheOptions
from ctrlruntime.cache.reflector import WatchOptions
from ctrlruntime.rest import RESTMapper, get_config
from ctrlruntime.rest.transport import Transport
from ctrlruntime.scheme import Scheme
from ctrlruntime.testing import Environment, eventually

SELECTORS = ["", "labelSelector=shade%3Ddark", "labelSelector=size", "labelSelector=shade%20in%20(dark,light)"]
NOTES = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "notes.histories.example.com"},
    "spec": {
        "group": "histories.example.com",
        "scope": "Namespaced",
        "names": {"plural": "notes", "kind": "Note", "singular": "note", "listKind": "NoteList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"data": {"type": "object", "additionalProperties": {"type": "string"}}},
                    }
                },
            }
        ],
    },
}
KINDS = {
    "configmaps": ("/api/v1/namespaces/{}/configmaps", {"apiVersion": "v1", "kind": "ConfigMap"}),
    "notes": (
        "/apis/histories.example.com/v1/namespaces/{}/notes",
        {"apiVersion": "histories.example.com/v1", "kind": "Note"},
    ),
}


@pytest.fixture(scope="module")
def _installed() -> set[str]:
    return set()


@pytest.fixture
async def client(server: Environment, _installed: set[str]) -> AsyncIterator[Client]:
    if server.backend not in _installed:
        server.install_crds(NOTES)
        _installed.add(server.backend)
    client = Client(server.kubeconfig)
    yield client
    await client.close()


async def written(client: Client, path: str, head: dict[str, str], seed: int) -> list[Watcher]:
    """Write at random from three sides while watchers begin; return the watchers when all have seen the end."""
    rng = random.Random(seed)
    watchers: list[Watcher] = []
    running: list[asyncio.Task[None]] = []
    writers = [Writes(client, path, head, random.Random(seed * 10 + number)) for number in range(3)]
    async with asyncio.timeout(LONGEST_WAIT):
        for _ in range(25):
            if rng.random() < 0.4:
                watcher = await begin(client, path, rng.choice(SELECTORS), rng)
                watchers.append(watcher)
                running.append(asyncio.create_task(watcher.run()))
            await asyncio.gather(*(writer.one() for writer in writers))
        whole = await begin(client, path, "", rng)
        running.append(asyncio.create_task(whole.run()))
        await writers[0].finish()
        await asyncio.gather(*running)
    return [*watchers, whole]


@pytest.mark.parametrize("seed", seeds(range(12), 3))
@pytest.mark.parametrize("kind", KINDS)
async def test_every_watcher_arrives_at_what_a_list_shows(client, namespace, kind, seed):
    template, head = KINDS[kind]
    path = template.format(namespace)
    for watcher in await written(client, path, head, seed):
        selector = next(
            part for part in [*watcher.query.split("&"), ""] if part.startswith("labelSelector") or not part
        )
        listed = await client.list(path, selector)
        shown = {item["metadata"]["name"]: item for item in listed["items"]}
        replayed = watcher.replayed()
        for item in [*shown.values(), *replayed.values()]:  # items of built-in lists carry no kind
            item.pop("kind", None)
            item.pop("apiVersion", None)
        assert replayed == shown


@pytest.mark.parametrize("seed", seeds(range(12, 18), 2))
async def test_frames_come_in_the_order_of_the_writes(client, namespace, seed):
    template, head = KINDS["configmaps"]
    for watcher in await written(client, template.format(namespace), head, seed):
        live = [version for version in watcher.versions() if version > watcher.start] if watcher.start else []
        assert live == sorted(set(live))


@pytest.mark.parametrize("seed", seeds(range(20, 26), 2))
async def test_a_list_at_a_version_shows_what_the_frames_lead_to_up_to_it(client, namespace, seed):
    template, head = KINDS["notes"]
    path = template.format(namespace)
    first = Watcher(client, path, "resourceVersion=" + (await client.list(path))["metadata"]["resourceVersion"])
    watching = asyncio.create_task(first.run())
    await written(client, path, head, seed)
    await asyncio.wait_for(watching, LONGEST_WAIT)
    versions = first.versions()
    for version in random.Random(seed).sample(versions, min(8, len(versions))):
        listed = await client.list(path, f"resourceVersion={version}&resourceVersionMatch=Exact")
        assert {item["metadata"]["name"]: item for item in listed["items"]} == first.replayed(version)


class Note(Object, group="histories.example.com", version="v1"):
    data: dict[str, str] = Field(default_factory=dict)


@pytest.mark.parametrize("server", ["embedded"], indirect=True)  # only this one forgets when it is asked to
@pytest.mark.parametrize("seed", range(30, 34))
async def test_a_cache_loses_nothing_when_history_is_lost_and_watches_are_cut(server, client, namespace, seed):
    template, head = KINDS["notes"]
    path = template.format(namespace)
    rng = random.Random(seed)
    writer = Writes(client, path, head, rng)
    faults = server.embedded.server.faults
    transport = Transport(get_config(str(server.kubeconfig_path)))
    cache = Cache(
        transport,
        RESTMapper(transport.fetch),
        Scheme(Note),
        options=CacheOptions(watch=WatchOptions(timeout=(1.0, 2.0))),
    )
    async with asyncio.timeout(LONGEST_WAIT), running(cache):
        await cache.list(Note, namespace=namespace)
        for _ in range(80):
            await asyncio.gather(writer.one(), writer.one())
            match rng.randrange(8):
                case 0:
                    server.embedded.call(faults.expire_history)
                case 1:
                    server.embedded.call(faults.close_watches)
                case _:
                    pass
        shown = {
            item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in (await client.list(path))["items"]
        }

        async def held() -> bool:
            notes = await cache.list(Note, namespace=namespace)
            return {note.metadata.name: note.metadata.resource_version for note in notes} == shown

        await eventually(held, timeout=LONGEST_WAIT)
    await transport.close()
