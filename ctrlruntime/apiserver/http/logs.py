"""`pods/log`: what the simulated containers have written, which is what annotations on the Pod say (`apiserver.behaviour`)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from aiohttp import web

from ctrlruntime import field_errors
from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.behaviour import log_of
from ctrlruntime.apiserver.go_values import parse_int
from ctrlruntime.apiserver.http.answers import headers_of
from ctrlruntime.apiserver.http.calls import Call
from ctrlruntime.errors import BadRequest, StatusCause
from ctrlruntime.schema.trees import Document

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_NUMBERS = (("tailLines", 0, "must be greater than or equal to 0"), ("limitBytes", 1, "must be greater than 0"),
            ("sinceSeconds", 1, "must be greater than 0"))  # fmt: skip


def container_of(call: Call, pod: Document) -> str:
    """Return the container that a call means. Raises: BadRequest when it names none of several, or one the pod has not."""
    name, spec, asked = pod["metadata"]["name"], pod.get("spec") or {}, call.query.get("container", "")
    names = [str(one["name"]) for key in _CONTAINERS for one in spec.get(key) or ()]
    if asked:
        if asked not in names:
            raise BadRequest(f"container {asked} is not valid for pod {name}")
        return asked
    if len(names) > 1:
        listed = " ".join(names)
        raise BadRequest(f"a container name must be specified for pod {name}, choose one of: [{listed}]")
    return names[0]


def status_of(pod: Document, container: str) -> Document:
    """Return the status of a container of any sort; empty before the kubelet has written one."""
    status: Document = pod.get("status") or {}
    statuses: Iterator[Document] = (one for field in _STATUSES for one in status.get(field) or ())
    return next((one for one in statuses if one.get("name") == container), {})


def log_answer(call: Call, pod: Document, now: float) -> web.Response:
    """Answer a log request: nothing before the pod is on a node, then its text, cut as asked.

    All lines are as old as the container's start.

    Raises: BadRequest, Invalid as kube-apiserver and kubelet would.
    """
    name = str(pod["metadata"]["name"])
    numbers = _read_numbers(call)
    causes = list(_option_causes(call, numbers))
    if causes:
        raise failures.invalid("PodLogOptions", "", name, causes)
    container = container_of(call, pod)
    if not (pod.get("spec") or {}).get("nodeName"):
        return web.Response(status=204, headers=headers_of())
    _check_started(call, pod, container)
    started = _started(call, pod, container)
    text = log_of(pod, container)
    since = _since(call, numbers, now)
    if since is not None and started and datetime.fromisoformat(started).timestamp() < since:
        text = ""
    text = _cut(stamped(call, pod, container, text), numbers)
    headers = headers_of(call.warnings)
    headers["Content-Type"] = "text/plain"
    return web.Response(body=text.encode(), headers=headers)


def _read_numbers(call: Call) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, _, _ in _NUMBERS:
        text = call.query.get(name)
        if text is not None:
            try:
                found[name] = parse_int(text)
            except ValueError as error:
                raise BadRequest(str(error)) from None
    return found


def _option_causes(call: Call, numbers: dict[str, int]) -> Iterator[StatusCause]:
    for name, least, text in _NUMBERS:
        if name in numbers and numbers[name] < least:
            yield field_errors.invalid_value(name, numbers[name], text)
    if "sinceSeconds" in call.query and "sinceTime" in call.query:
        yield field_errors.forbidden_field("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified")
    if "stream" in call.query:
        yield field_errors.forbidden_field("stream", "may not be specified")


def _check_started(call: Call, pod: Document, container: str) -> None:
    """A kubelet has no log of a container that has not begun."""
    name, state = pod["metadata"]["name"], status_of(pod, container)
    if call.asks("previous") and not (state.get("lastState") or {}).get("terminated"):
        raise BadRequest(f'previous terminated container "{container}" in pod "{name}" not found')
    waiting = (state.get("state") or {}).get("waiting")
    if (waiting is None and state) or (state.get("lastState") or {}).get("terminated"):
        return
    reason = (waiting or {}).get("reason", "ContainerCreating")
    if reason in {"ErrImagePull", "ImagePullBackOff"}:
        reason = "trying and failing to pull image"
    raise BadRequest(f'container "{container}" in pod "{name}" is waiting to start: {reason}')


def stamped(call: Call, pod: Document, container: str, text: str) -> str:
    """Return the lines of a log, each after its time if the call asks for `timestamps`."""
    started = _started(call, pod, container)
    if not started or not call.asks("timestamps"):
        return text
    return "".join(f"{started} {line}" for line in text.splitlines(keepends=True))


def _started(call: Call, pod: Document, container: str) -> str:
    """Return when the run of a container began that is asked about; empty if its status does not say it."""
    found = status_of(pod, container)
    state, last = found.get("state") or {}, found.get("lastState") or {}
    if call.asks("previous") or state.get("waiting"):
        state = last
    return str((state.get("running") or state.get("terminated") or {}).get("startedAt") or "")


def _since(call: Call, numbers: dict[str, int], now: float) -> float | None:
    """Return the moment from which on lines are wanted. Raises: BadRequest."""
    if "sinceSeconds" in numbers:
        return now - numbers["sinceSeconds"]
    text = call.query.get("sinceTime")
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise BadRequest(
            f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"'
        ) from None


def _cut(text: str, numbers: dict[str, int]) -> str:
    lines = text.splitlines(keepends=True)
    if "tailLines" in numbers:
        lines = lines[len(lines) - min(numbers["tailLines"], len(lines)) :]
    shown = "".join(lines).encode()
    return shown[: numbers.get("limitBytes", len(shown))].decode("utf-8", "ignore")
