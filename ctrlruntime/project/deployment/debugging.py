"""The debug pages of a project's operator in a cluster: finds its Pod, and reads one page through the API server."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from ctrlruntime.api import apps, core
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.cluster import Cluster
from ctrlruntime.errors import APIStatusError, ConfigError, CtrlError, Forbidden, TransportError
from ctrlruntime.project.deployment.objects import MANAGER, Document, Named
from ctrlruntime.project.deployment.pods import SeveralPodsError, arguments, find_pod, flag_value, operator_container
from ctrlruntime.project.deployment.portforward import Page, PortForwardError, get_from_pod
from ctrlruntime.project.running import forward_port
from ctrlruntime.serving.debug import DEBUG_FLAG, parse_debug_address

__all__ = ["DebugPageError", "NoDebugPortError", "debug_page", "debug_port"]

_EXAMPLE: Final = 8082
_SIMULATED: Final = "The container is simulated"
"""What the embedded API server says of a port that nothing is behind."""


class DebugPageError(CtrlError):
    """A debug page of the operator in the cluster cannot be read; the message says what to do."""


class NoDebugPortError(DebugPageError):
    """The operator in the cluster serves no debug pages at a known port; the message says what to add."""


async def debug_page(
    cluster: Cluster,
    deployment: Document,
    target: str,
    *,
    timeout: float,
    pod_name: str = "",
    tell: Callable[[NamespacedName], None] = lambda _pod: None,
) -> Page:
    """Return a debug page of the Pod of a rendered Deployment that reconciles, or of its Pod `pod_name`.

    `timeout`: seconds for the page. `tell` is called with the Pod before the page is requested. Raises: DebugPageError.
    """
    named, port = Named.of(deployment), _rendered_port(deployment)
    with _advising(named.namespace, f"deployment/{named.name}", port):
        if pod_name:
            pod = await cluster.api_reader.get(core.Pod, NamespacedName(named.namespace, pod_name))
        else:
            pod = await find_pod(cluster, named.key)
    key = NamespacedName(pod.metadata.namespace, pod.metadata.name)
    port = debug_port(key, pod.spec)
    tell(key)
    with _advising(key.namespace, f"pod/{key.name}", port):
        try:
            return await get_from_pod(cluster.transport, key, port, target, timeout=timeout)
        except APIStatusError as error:
            raise _refusal(error, key) from error
        except PortForwardError as error:
            if _SIMULATED in str(error):
                raise NoDebugPortError(
                    f"Pod {key} runs no operator: the embedded API server simulates Pods and starts no containers. "
                    "Run the operator with `ctrl run`"
                ) from error
            raise DebugPageError(
                f"{error}. Check that the operator runs: `kubectl -n {key.namespace} logs {key.name}`"
            ) from error


def debug_port(pod: NamespacedName, spec: core.PodSpec) -> int:
    """Return the port of the debug pages, from the arguments of the operator's container. Raises: NoDebugPortError."""
    where = "config/manager/manager.yaml, and run `ctrl deploy`"
    container = operator_container(spec)
    if container is None:
        names = ", ".join(each.name for each in spec.containers)
        raise NoDebugPortError(
            f"Pod {pod} has no container {MANAGER} but {names}. Rename the operator's to {MANAGER} in {where}"
        )
    value = flag_value(arguments(container), DEBUG_FLAG)
    add = f"the argument {DEBUG_FLAG}=127.0.0.1:{_EXAMPLE}"
    try:
        address = parse_debug_address(value or "")
    except ConfigError as error:
        raise NoDebugPortError(f"Pod {pod} serves no debug pages: {error}. Set {add} in {where}") from error
    if address is None:
        raise NoDebugPortError(
            f"Pod {pod} serves no debug pages. Add {add} to the container {container.name} in {where}"
        )
    if address.port == 0:
        raise NoDebugPortError(f"Pod {pod} serves its debug pages at a random port ({value}). Set {add} in {where}")
    return address.port


def _refusal(error: APIStatusError, pod: NamespacedName) -> CtrlError:
    """Return the error for a failure of the API server to forward a port."""
    if isinstance(error, Forbidden):
        return DebugPageError(
            f"{error}. Ask for the verbs get and create on pods/portforward in namespace {pod.namespace}"
        )
    return DebugPageError(f"the API server cannot forward a port of Pod {pod}: {error}. Check its node")


def _rendered_port(deployment: Document) -> int:
    """Return the port that the Pods of a Deployment will have."""
    spec = apps.Deployment.from_dict(dict(deployment)).spec.template.spec
    try:
        return debug_port(Named.of(deployment).key, spec)
    except NoDebugPortError:
        return _EXAMPLE


@contextmanager
def _advising(namespace: str, name: str, port: int) -> Generator[None]:
    """Add the alternative to each error, except where it would not help."""
    forward = forward_port(name, port, namespace=namespace)
    try:
        yield
    except NoDebugPortError:
        raise
    except SeveralPodsError as error:
        one = forward_port("pod/NAME", port, namespace=namespace)
        raise DebugPageError(f"{error}. Or choose one, {one}") from error
    except TransportError as error:
        raise DebugPageError(f"{error}. Check the kubeconfig and its context, or {forward}") from error
    except CtrlError as error:
        raise DebugPageError(f"{str(error).rstrip('.')}, or {forward}") from error
