"""Runs scenarios: their steps in order over TLS sockets, several scenarios side by side.

From below: `Stages` and `Hooks`. Handed up: for each scenario a `Run` with its normalised answers, or what went wrong.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import re
import secrets
import shutil
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import aiohttp
import yaml
from unfinished import abort
from yarl import URL

from scenario.definitions import whole
from scenario.format import Scenario
from scenario.hooks import Hooks
from scenario.normal import Normalizer
from scenario.stage import AGENT, Stage, Stages
from scenario.variables import NOTHING, drop_path, read_path, substitute

AT_ONCE = 12
PATIENCE = 120.0  # seconds for a whole scenario; they end as soon as they can
TRIES = 20  # of a scenario whose steps have to happen in one second
_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
    "yaml": "application/yaml",
    "protobuf": "application/vnd.kubernetes.protobuf",
    "none": "",
}
_ACCEPTS = {
    "table": "application/json;as=Table;v=v1;g=meta.k8s.io",
    "metadata": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "metadatalist": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "discovery": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "yaml": "application/yaml",
    "none": "",
}
_ALPHABET = "bcdfghjkmnpqrstvwxz2456789"
_MISSING = object()


class StepError(Exception):
    """A step could not be carried out; the scenario has no answer."""


@dataclass
class Run:
    """What one scenario answered on one server: `steps` normalised, or `error`."""

    scenario: Scenario
    steps: list[Any] = field(default_factory=list)
    error: str = ""
    seconds: float = 0.0


async def run_all(stages: Stages, scenarios: Iterable[Scenario], *, at_once: int = AT_ONCE) -> dict[str, Run]:
    """Run scenarios, those that need the server for themselves first and one by one."""
    runs: dict[str, Run] = {}
    limit = asyncio.Semaphore(at_once)
    ordered = list(scenarios)

    async def one(scenario: Scenario) -> None:
        async with limit:
            runs[scenario.id] = await run(stages, hooks, scenario)

    async with Hooks() as hooks:
        for scenario in ordered:
            if "alone" in scenario.needs:
                await one(scenario)
        async with asyncio.TaskGroup() as group:
            for scenario in ordered:
                if "alone" not in scenario.needs:
                    group.create_task(one(scenario))
    return {scenario.id: runs[scenario.id] for scenario in ordered}


async def run(stages: Stages, hooks: Hooks, scenario: Scenario) -> Run:
    """Run one scenario; failures are part of the result."""
    loop = asyncio.get_running_loop()
    begin = loop.time()
    result = Run(scenario)
    stage = await stages.get(scenario.needs)  # a server that does not start ends the run
    try:
        for _ in range(TRIES):
            async with asyncio.timeout(PATIENCE), _Play(stage, hooks, scenario) as play:
                result.steps = await play.act()
                if not play.needs_another_second():
                    break
    except TimeoutError:
        result.error = f"took longer than {PATIENCE:g} s"
    except StepError as error:
        result.error = str(error)
    except Exception:  # noqa: BLE001 - one scenario must not end the run
        result.error = traceback.format_exc(limit=-4)
    result.seconds = loop.time() - begin
    return result


class _Play:
    """One scenario on one stage."""

    def __init__(self, stage: Stage, hooks: Hooks, scenario: Scenario) -> None:
        self._stage = stage
        self._hooks = hooks
        self._scenario = scenario
        self._token = "".join(secrets.choice(_ALPHABET) for _ in range(5))
        name = f"{scenario.id.lower().replace('_', '-').replace('.', '-')}-{self._token}"
        group = f"{name}.example.com"
        namespace = f"t-{name}"
        self._hook_run = name
        self._variables: dict[str, Any] = {
            "ns": namespace,
            "group": group,
            "id": self._token,
            "nothing": NOTHING,  # the tree is without a key that has it
            "reversed": ".".join(reversed(group.split("."))),  # as OpenAPI names schemas
            "core": f"/api/v1/namespaces/{namespace}",
            "apps": f"/apis/apps/v1/namespaces/{namespace}",
            "batch": f"/apis/batch/v1/namespaces/{namespace}",
            "cr": f"/apis/{group}/v1/namespaces/{namespace}",
        }
        self._variables.update(scenario.variables)
        self._variables.update(hooks.add(self._hook_run, substitute(dict(scenario.hooks), self._variables)))
        self._watches: dict[str, _Watch] = {}
        self._answers: list[Any] = []
        self._choices: list[Mapping[str, Any]] = []
        self._defined: list[str] = []
        self._second: float | None = None

    async def __aenter__(self) -> Self:
        text = self._scenario.text
        if any(word in text for word in ("$(ns)", "$(core)", "$(apps)", "$(batch)", "$(cr)")):
            await self._ask("POST", "/api/v1/namespaces", {"metadata": {"name": self._variables["ns"]}})
            if "controllers" in self._scenario.needs or "nodes" in self._scenario.needs:
                await self._poll(f"{self._variables['core']}/serviceaccounts/default", lambda status, _: status == 200)
        for crd in self._scenario.crds:
            await self._define(substitute(dict(crd), self._variables))
        return self

    async def __aexit__(self, *_: object) -> None:
        for watch in self._watches.values():
            await watch.close()
        is_alone = "alone" in self._scenario.needs
        if not is_alone and self._stage.backend == "real":
            return  # it takes its time to delete definitions, and has a queue for that
        for name in self._defined:
            await self._send("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}", {})
            if is_alone:  # the next one must find the server as this one did
                await self._poll(f"/apis/{name.partition('.')[2]}", lambda status, _: status == 404)

    async def act(self) -> list[Any]:
        """Carry out the steps and return the normalised answers."""
        for number, step in enumerate(self._scenario.steps):
            try:
                answer = await self._step(step)
            except (StepError, KeyError, ValueError) as error:
                raise StepError(f"step {number} {_shown(step)}: {error!r}") from error
            except TimeoutError as error:
                raise StepError(f"step {number} {_shown(step)}: timed out") from error
            self._answers.append(answer)
            self._choices.append(self._choice(step))
        normal = Normalizer(self._own(), self._scenario.text).apply(self._answers)
        return [_select(answer, choice) for answer, choice in zip(normal, self._choices, strict=True)]

    def needs_another_second(self) -> bool:
        """Tell whether steps that had to happen in one second took longer, so that times in the answers differ by chance."""
        return self._second is not None and time.time() >= self._second

    def _own(self) -> dict[str, str]:
        """Return the texts of this run by which it would differ from another one."""
        group = self._variables["group"]
        camel = "".join(part.capitalize() for part in re.split(r"[.-]", group))
        names = {self._variables[name]: f"$({name})" for name in ("group", "ns", "id", "reversed")}
        return {
            **names,
            f"{self._hooks.url}/{self._hook_run}": "$(hooks)",
            self._hooks.ca: "$(ca)",
            camel: "$(camelgroup)",
        }

    def _choice(self, step: Mapping[str, Any]) -> Any:
        """Return `pick` and `drop` in the names that the normalised answer has, and `unordered`."""
        choice = {key: substitute(step[key], self._variables) for key in ("pick", "drop") if key in step}
        for text, name in sorted(self._own().items(), key=lambda item: -len(item[0])):  # one may be in another
            choice = {key: [path.replace(text, name) for path in paths] for key, paths in choice.items()}
        return {**choice, "unordered": True} if "do" in step and step.get("unordered") else choice

    async def _step(self, step: Mapping[str, Any]) -> Any:
        kinds: dict[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {
            "do": self._do, "watch": self._watch, "collect": self._collect, "wait": self._wait, "kubectl": self._kubectl,
            "crd": self._crd, "hooked": self._hooked, "expire": self._expire, "pause": self._pause,
        }  # fmt: skip
        for kind, act in kinds.items():
            if kind in step:
                if "times" in step:
                    answers = [await act(_given(step, {**self._variables, "i": i})) for i in range(step["times"])]
                    return answers[-1]
                return await act(_given(step, self._variables))
        raise StepError("no such step")

    # Requests

    async def _do(self, step: dict[str, Any]) -> Any:
        method, _, path = step["do"].partition(" ")
        status, headers, body = await self._send(method, path, step)
        if isinstance(capture := step.get("capture"), dict):
            self._capture(capture, headers, body)
        if step.get("quiet"):
            if status >= 400 and step["quiet"] != "any":
                raise StepError(f"was answered with {status} {body}")
            return None
        if step.get("raw"):
            return {"status": status, "headers": headers, "body": self._raw}
        answer: dict[str, Any] = {"status": status, "headers": headers}
        if step.get("order"):
            answer["order"] = _orders(body)
        # What is very long is cut to what is wanted before it is normalised; that takes its time.
        answer["body"] = _chosen(body, step) if len(self._raw) > 200_000 else body
        return answer

    def _capture(self, capture: Mapping[str, str], headers: Mapping[str, Any], body: Any) -> None:
        for name, path in capture.items():
            value = read_path({"headers": headers, "body": body}, path, _MISSING)
            if value is _MISSING:
                value = read_path(body, path, _MISSING)
            if value is _MISSING:
                raise StepError(f"nothing to capture at {path} of {json.dumps(body)[:300]}")
            self._variables[name] = value

    async def _send(self, method: str, path: str, step: Mapping[str, Any]) -> tuple[int, dict[str, Any], Any]:
        data, content_type = _payload(step)
        session, headers = self._identity(step)
        kind = step.get("type", content_type)
        if kind is not None and (text := _TYPES.get(kind, kind)):
            headers["Content-Type"] = text
        accept = step.get("accept", "application/json")
        if text := _ACCEPTS.get(accept, accept):
            headers["Accept"] = text
        given: list[tuple[str, str]] = list(headers.items())
        for name, value in (step.get("headers") or {}).items():
            given = [pair for pair in given if pair[0].lower() != name.lower()]
            given += [(name, str(one)) for one in (value if isinstance(value, list) else [value])]
        url = URL(self._stage.url + path, encoded=True)
        async with session.request(method, url, data=data, headers=given, allow_redirects=False) as answer:
            raw = await answer.read()
            return answer.status, _headers(answer), self._body(answer, raw)

    def _body(self, answer: aiohttp.ClientResponse, raw: bytes) -> Any:
        if answer.headers.get("Content-Encoding") == "gzip":
            raw = gzip.decompress(raw)
        self._raw = raw.decode("utf-8", "replace")
        kind = answer.headers.get("Content-Type", "")
        # The index of OpenAPI is JSON that calls itself text.
        if "json" in kind or self._raw.startswith('{"'):
            try:
                return json.loads(raw)
            except ValueError:
                return self._raw
        if "yaml" in kind:
            return {"yaml": yaml.load(raw, yaml.BaseLoader)}  # strings only, so no dates
        return self._raw

    def _identity(self, step: Mapping[str, Any]) -> tuple[aiohttp.ClientSession, dict[str, Any]]:
        headers = {"User-Agent": AGENT}
        certificate, who = step.get("certificate"), step.get("as")
        if certificate:
            return self._stage.session(certificate["user"], tuple(certificate.get("groups", ()))), headers
        session = self._stage.session()
        if "token" in step:
            headers["Authorization"] = f"Bearer {step['token']}"
            return session, headers
        if who == "anonymous":
            return session, headers
        headers.update(self._stage.credential())
        if isinstance(who, str):
            headers["Impersonate-User"] = who
        return session, headers

    async def _ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        status, _, answer = await self._send(method, path, {"body": body} if body is not None else {})
        if method != "GET" and status >= 400:
            raise StepError(f"{method} {path}: {status} {answer}")
        return status, answer

    async def _poll(self, path: str, done: Callable[[int, Any], bool], seconds: float = 20.0) -> tuple[int, Any]:
        last: Any = None
        pause = 0.01
        try:
            async with asyncio.timeout(seconds):
                while True:
                    last = await self._ask("GET", path)
                    if done(*last):
                        return last
                    await asyncio.sleep(pause)
                    pause = min(pause * 1.5, 0.25)  # many wait at once, and the server has better to do
        except TimeoutError:
            raise StepError(f"{path} did not come to be in {seconds:g} s; last: {json.dumps(last)[:600]}") from None

    async def _wait(self, step: dict[str, Any]) -> Any:
        _, _, path = step["wait"].rpartition(" ")
        until = dict(step["until"])
        wanted = until.pop("status", 200)

        def done(status: int, body: Any) -> bool:
            return status == wanted and all(_meets(read_path(body, at), value) for at, value in until.items())

        status, body = await self._poll(path, done, float(step.get("seconds", 60)))
        if isinstance(capture := step.get("capture"), dict):
            self._capture(capture, {}, body)
        return None if step.get("quiet") else {"status": status, "body": body}

    # Definitions

    async def _crd(self, step: dict[str, Any]) -> None:
        await self._define(step["crd"])

    async def _define(self, short: Mapping[str, Any]) -> None:
        document = whole(short, self._variables["group"])
        await self._ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", document)
        name, group, plural = (
            document["metadata"]["name"],
            document["spec"]["group"],
            document["spec"]["names"]["plural"],
        )
        self._defined.append(name)
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        await self._poll(path, lambda _, body: _condition(body, "Established") == "True")
        for version in document["spec"]["versions"]:
            if version["served"]:
                await self._poll(f"/apis/{group}/{version['name']}/{plural}", lambda status, _: status == 200)
                await self._poll(f"/apis/{group}/{version['name']}", lambda status, _: status == 200)

    # Watches

    async def _watch(self, step: dict[str, Any]) -> Any:
        session, headers = self._identity(step)
        accept = step.get("accept", "application/json")
        headers["Accept"] = _ACCEPTS.get(accept, accept)
        headers.update(step.get("headers") or {})
        path = step["from"]
        if "watch=" not in path and "/watch/" not in path:
            path += ("&" if "?" in path else "?") + "watch=true"
        url = URL(self._stage.url + path, encoded=True)
        response = await session.get(url, headers=headers, allow_redirects=False)
        shown = {"status": response.status, "headers": _headers(response)}
        if response.status != 200:
            raw = await response.read()
            return {**shown, "body": self._body(response, raw)}
        self._watches[step["watch"]] = _Watch(response)
        return shown

    async def _collect(self, step: dict[str, Any]) -> Any:
        watch = self._watches[step["collect"]]
        until = step["until"]
        frames = await watch.collect(until)
        if step.get("unordered"):
            frames.sort(key=lambda frame: json.dumps([frame["type"], read_path(frame, "object.metadata.name")]))
        return {"frames": frames, "closed": True} if until.get("closed") else {"frames": frames}

    # Others

    async def _kubectl(self, step: dict[str, Any]) -> Any:
        program = shutil.which("kubectl")
        if program is None:
            raise StepError("needs kubectl in the PATH")
        home = self._stage.folder.name
        process = await asyncio.create_subprocess_exec(
            program, "--namespace", self._variables["ns"], *map(str, step["kubectl"]),
            env={"PATH": os.environ["PATH"], "HOME": home, "KUBECONFIG": str(self._stage.kubeconfig)},
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        stdin = step.get("stdin", "")
        text = stdin if isinstance(stdin, str) else json.dumps(stdin)
        out, err = await process.communicate(text.encode())
        lines = out.decode().splitlines()
        return {
            "exit": process.returncode,
            "out": sorted(lines) if step.get("sorted") else lines,
            "err": err.decode().splitlines(),
        }

    async def _hooked(self, step: dict[str, Any]) -> Any:
        calls = self._hooks.received[f"{self._hook_run}/{step['hooked']}"]
        if count := step.get("count"):
            async with asyncio.timeout(10):
                while len(calls) < count:  # noqa: ASYNC110 - calls come from another task
                    await asyncio.sleep(0.01)
        return {"calls": list(calls)}

    async def _expire(self, step: dict[str, Any]) -> None:
        await self._stage.expire()

    async def _pause(self, step: dict[str, Any]) -> None:
        if step["pause"] == "second":  # what follows happens in one second; if not, the scenario runs again
            await asyncio.sleep(1.02 - time.time() % 1)
            self._second = time.time() // 1 + 1
        else:
            await asyncio.sleep(float(step["pause"]))


class _Watch:
    """One open watch: frames are read as they come, and handed out once."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._frames: list[Any] = []
        self._closed = False
        self._news = asyncio.Event()
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            rest = b""
            async for chunk in self._response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                frames = [json.loads(line) for line in lines if line.strip()]
                self._frames += [frame for frame in frames if not _is_periodic(frame)]
                self._news.set()
        except (aiohttp.ClientError, ConnectionError):
            pass
        finally:
            self._closed = True
            self._news.set()

    async def collect(self, until: Mapping[str, Any]) -> list[Any]:
        """Return the frames up to the condition: `count`, `closed`, `type`, `name`, `quiet` (seconds without a frame)."""
        seconds = float(until.get("seconds", 20))
        try:
            async with asyncio.timeout(seconds):
                while (end := self._end(until)) is None:
                    self._news.clear()
                    if "quiet" in until:
                        try:
                            async with asyncio.timeout(until["quiet"]):
                                await self._news.wait()
                        except TimeoutError:
                            end = len(self._frames)
                            break
                    else:
                        await self._news.wait()
        except TimeoutError:
            raise StepError(
                f"{dict(until)} did not come in {seconds:g} s; there are {json.dumps(self._frames)[:800]}"
            ) from None
        taken, self._frames = self._frames[:end], self._frames[end:]
        return taken

    def _end(self, until: Mapping[str, Any]) -> int | None:
        if self._closed and ("closed" in until or "quiet" in until):
            return len(self._frames)
        if "count" in until and len(self._frames) >= until["count"]:
            return int(until["count"])
        for index, frame in enumerate(self._frames):
            if ("type" in until or "name" in until) and all(
                (
                    frame["type"] == until.get("type", frame["type"]),
                    read_path(frame, "object.metadata.name")
                    == until.get("name", read_path(frame, "object.metadata.name")),
                )
            ):
                return index + 1
        if self._closed:
            raise StepError(f"the watch ended before {dict(until)}; there are {json.dumps(self._frames)[:800]}")
        return None

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        abort(self._response)


def _is_periodic(frame: Mapping[str, Any]) -> bool:
    """Tell whether a frame is a bookmark that came because time passed: when it comes is nobody's to say."""
    return frame.get("type") == "BOOKMARK" and "initial-events-end" not in json.dumps(frame)


def _given(step: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
    made = {key: substitute(value, variables) for key, value in step.items()}
    return {key: value for key, value in made.items() if value is not NOTHING}


def _payload(step: Mapping[str, Any]) -> tuple[bytes | None, str | None]:
    if "body" in step:
        return json.dumps(step["body"], separators=(",", ":")).encode(), "application/json"
    if "yaml" in step:
        return yaml.safe_dump(step["yaml"]).encode(), "application/yaml"
    if "text" in step:
        return str(step["text"]).encode(), "application/json"
    if "base64" in step:
        return base64.b64decode(step["base64"]), "application/vnd.kubernetes.protobuf"
    return None, None


def _headers(answer: aiohttp.ClientResponse) -> dict[str, Any]:
    headers: dict[str, Any] = {name.lower(): value for name, value in answer.headers.items()}
    if warnings := answer.headers.getall("Warning", []):
        headers["warning"] = sorted(warnings)
    return headers


def _select(answer: Any, choice: Mapping[str, Any]) -> Any:
    """Return the normalised answer of a step with the chosen places of its bodies."""
    if not choice or not isinstance(answer, dict):
        return answer
    if "frames" in answer:
        return {
            **answer,
            "frames": [{**frame, "object": _chosen(frame["object"], choice)} for frame in answer["frames"]],
        }
    if "calls" in answer:
        return {**answer, "calls": [_chosen(call, choice) for call in answer["calls"]]}
    if "body" in answer:
        return {**answer, "body": _chosen(answer["body"], choice)}
    return answer


def _chosen(body: Any, step: Mapping[str, Any]) -> Any:
    """Return the picked places of an answer, without the dropped ones."""
    if not isinstance(body, dict):
        return body
    body = json.loads(json.dumps(body))
    for path in step.get("drop") or ():
        drop_path(body, path)
    if step.get("unordered"):
        _sort_causes(body)
    if "pick" in step:
        # A failure is worth seeing whole.
        if body.get("kind") == "Status" and body.get("status") == "Failure":
            return body
        if any(path in body for path in step["pick"]):  # chosen already
            return {path: body.get(path, read_path(body, path)) for path in step["pick"]}
        return {path: read_path(body, path) for path in step["pick"]}
    return body


def _sort_causes(body: dict[str, Any]) -> None:
    """Sort the causes of a failure, and the words of its message, which lists them too."""
    causes = (body.get("details") or {}).get("causes")
    if causes:
        causes.sort(key=lambda cause: json.dumps(cause, sort_keys=True))
        if "message" in body:
            body["message"] = sorted(word.strip("[],") for word in body["message"].split())


def _orders(body: Any) -> Any:
    """Return the keys in the order they came, two levels deep."""
    if not isinstance(body, dict):
        return None
    owners = read_path(body, "metadata.managedFields")
    managers = {"managers": [one.get("manager") for one in owners]} if owners else {}
    return {"": list(body), **{key: list(value) for key, value in body.items() if isinstance(value, dict)}, **managers}


def _meets(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict) and set(wanted) == {"at least"}:
        return isinstance(found, int) and found >= wanted["at least"]
    if isinstance(wanted, dict) and set(wanted) == {"count"}:
        return isinstance(found, list) and len(found) == wanted["count"]
    if isinstance(wanted, dict) and set(wanted) == {"condition"}:
        kind, _, status = wanted["condition"].partition("=")
        return any(one["type"] == kind and one["status"] == status for one in found or ())
    if wanted == "present":
        return found is not None
    return bool(found == wanted)


def _condition(body: Any, kind: str) -> str:
    return next((one["status"] for one in read_path(body, "status.conditions") or () if one["type"] == kind), "")


def _shown(step: Mapping[str, Any]) -> str:
    return json.dumps({key: value for key, value in step.items() if key not in {"body", "text"}})[:200]
