"""What goes wrong between an operator and its API server, and what it says then; the same on both servers."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from loose_definitions import loose_definition
from pydantic import Field
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.errors import BadRequest, DecodeError, NoMatchError, NotRegisteredError, Unauthorized
from ctrlruntime.log.options import ERROR, INFO, WARN
from ctrlruntime.log.output import sink
from ctrlruntime.manager.manager import running
from ctrlruntime.rest.credentials import StaticToken
from ctrlruntime.rest.tls import TLSConfig
from ctrlruntime.testing import Environment, eventually

LEVELS = {INFO: "info", WARN: "warning", ERROR: "error"}
GROUP = f"bad-{secrets.token_hex(3)}.example.com"


class GadgetSpec(ctrl.Model):
    size: int = 0


class Gadget(ctrl.Object, group=GROUP, version="v1"):
    spec: GadgetSpec = Field(default_factory=GadgetSpec)


DEFINITION = loose_definition(Gadget)


@pytest.fixture
def logs() -> Iterator[list[dict[str, Any]]]:
    """Log lines as dicts: event, level, and their fields."""
    lines: list[dict[str, Any]] = []

    class Lines:
        threshold = -100

        def write(self, level, name, event, fields):
            lines.append({"event": event, "level": LEVELS.get(level, "debug"), "logger": name, **fields})

    before = sink.output
    sink.output = Lines()
    yield lines
    sink.output = before


@pytest.fixture
def make(server: Environment, namespace: str):
    def manager(kubeconfig: str = "", **options: Any) -> ctrl.Manager:
        config = ctrl.get_config(kubeconfig or str(server.kubeconfig_path))
        cache = ctrl.CacheOptions(namespaces=[namespace])
        return ctrl.new_manager(
            config, **{"scheme": ctrl.Scheme(Gadget), "cache": cache, "metrics_bind_address": "0", **options}
        )

    return manager


class Seen:
    """A reconciler that notes what it is given."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    async def reconcile(self, request: ctrl.Request) -> None:
        self.names.add(request.name)


async def admin(server: Environment, *arguments: Any) -> Any:
    return await asyncio.to_thread(server.connection.request, *arguments)


async def test_a_kind_the_scheme_does_not_know(make, namespace):
    class Unknown(ctrl.Object, group=GROUP, version="v1"):
        pass

    mgr = make(scheme=ctrl.Scheme())

    with pytest.raises(NotRegisteredError, match=r"Unknown is not in the Scheme; call scheme\.register\(Unknown\)"):
        ctrl.new_controller_managed_by(mgr).for_(Unknown).complete(Seen())
    with pytest.raises(NotRegisteredError, match=r"call scheme\.register\(Unknown\)"):
        await mgr.api_reader.get_or_none(Unknown, ctrl.NamespacedName(namespace, "any"))


async def test_a_kind_the_server_does_not_serve(make, namespace):
    class Missing(ctrl.Object, group="nowhere.example.com", version="v1"):
        pass

    mgr = make(scheme=ctrl.Scheme(Missing))
    said = r"does not serve Missing of nowhere\.example\.com/v1; .* CRD may be missing: .* and install it"

    async with running(mgr):
        with pytest.raises(NoMatchError, match=said):
            await mgr.client.get(Missing, ctrl.NamespacedName(namespace, "any"))
        with pytest.raises(NoMatchError, match=said):
            await mgr.client.create(Missing(metadata=meta.ObjectMeta(name="any", namespace=namespace)))


async def test_a_definition_that_is_missing_at_the_start(server, make, namespace, logs):
    mgr = make()
    gadgets, others = Seen(), Seen()
    ctrl.new_controller_managed_by(mgr).for_(Gadget).complete(gadgets)
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).complete(others)
    await admin(server, "POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "other"}})

    async with running(mgr):
        # The other controller works, and the line that says what to install is there.
        await eventually(lambda: "other" in others.names, timeout=LONGEST_WAIT)
        line = await eventually(lambda: next((line for line in logs if "not served" in line["event"]), None))
        assert line["level"] == "warning"
        assert "does not serve Gadget" in line["error"]
        assert line["hint"] == f"install the CustomResourceDefinition of Gadget in group {GROUP}"

        # It starts when the definition appears.
        await asyncio.to_thread(server.install_crds, DEFINITION)
        try:
            await admin(
                server,
                "POST",
                f"/apis/{GROUP}/v1/namespaces/{namespace}/gadgets",
                {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": "late"}},
            )
            await eventually(lambda: "late" in gadgets.names)
        finally:
            await asyncio.to_thread(server.uninstall_crds, [f"gadgets.{GROUP}"])

    assert len([line for line in logs if "not served" in line["event"] and line["level"] == "warning"]) <= 2


async def test_a_right_that_is_missing(server, make, namespace, logs, tmp_path):
    name = f"somebody-{secrets.token_hex(3)}"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(await asyncio.to_thread(server.add_user, name))
    mgr = make(str(kubeconfig))
    seen = Seen()
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).complete(seen)
    await admin(server, "POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "any"}})

    async with running(mgr):
        line = await eventually(lambda: next((line for line in logs if "forbidden to list" in line["event"]), None))
        assert f'User "{name}" cannot list resource "configmaps" in API group ""' in line["error"].replace(
            "watch", "list"
        )
        assert line["scope"] == f"namespace {namespace}"
        role, _, rule = line["missingRule"].partition(" with the rule ")
        assert role == f"a Role in namespace {namespace}"

        # What the line says is what helps.
        rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
        await admin(server, "POST", f"{rbac}/roles", {"metadata": {"name": "reader"}, "rules": [json.loads(rule)]})
        await admin(
            server,
            "POST",
            f"{rbac}/rolebindings",
            {
                "metadata": {"name": "reader"},
                "subjects": [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}],
                "roleRef": {"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"},
            },
        )
        await eventually(lambda: "any" in seen.names)

    assert len([line for line in logs if "forbidden to list" in line["event"]]) == 1


async def test_an_object_that_does_not_fit_its_class(server, make, namespace, logs):
    await asyncio.to_thread(server.install_crds, DEFINITION)
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/gadgets"
    for name, size in (("bad", "many"), ("good", 3)):
        body = {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": {"size": size}}
        await admin(server, "POST", path, body)
    mgr = make()
    sizes: dict[str, int] = {}

    async def reconcile(request: ctrl.Request) -> None:
        sizes[request.name] = (await mgr.client.get(Gadget, request)).spec.size

    ctrl.new_controller_managed_by(mgr).for_(Gadget).complete(reconcile)
    loose = ctrl.Unstructured.of(f"{GROUP}/v1", "Gadget")
    try:
        async with running(mgr):
            await eventually(lambda: sizes.get("good") == 3, timeout=LONGEST_WAIT)
            key = ctrl.NamespacedName(namespace, "bad")
            with pytest.raises(DecodeError, match=r"Gadget .*/bad does not fit the class Gadget: spec\.size: .*'many'"):
                await mgr.client.get(Gadget, key)
            assert (await mgr.client.get(loose, key))["spec"]["size"] == "many"
            line = await eventually(lambda: next((line for line in logs if "reconcile failed" in line["event"]), None))
            assert "spec.size" in line["error"]
            assert line["name"] == "bad"
    finally:
        await asyncio.to_thread(server.uninstall_crds, [f"gadgets.{GROUP}"])


async def test_a_token_the_server_does_not_know(server, make, namespace, logs):
    config = ctrl.get_config(str(server.kubeconfig_path))
    tls = TLSConfig(ca_data=config.tls.ca_data, ca_file=config.tls.ca_file)
    stranger = ctrl.Config(host=config.host, credential=StaticToken("wrong"), tls=tls)
    mgr = ctrl.new_manager(stranger, metrics_bind_address="0")
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).complete(Seen())

    async with running(mgr):
        with pytest.raises(Unauthorized):
            await mgr.api_reader.get(core.ConfigMap, ctrl.NamespacedName(namespace, "any"))
        line = await eventually(lambda: next((line for line in logs if "list-watch failed" in line["event"]), None))
        assert "nauthorized" in line["error"]


async def test_a_predicate_that_raises(server, make, namespace, logs):
    mgr = make()
    seen = Seen()

    def broken(event: ctrl.event.CreateEvent[core.ConfigMap]) -> bool:
        raise LookupError("no luck")

    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap, predicates=[broken]).complete(seen)
    await admin(server, "POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "any"}})

    async with running(mgr):
        # It counts as a yes: a reconcile too many is better than one too few.
        await eventually(lambda: "any" in seen.names, timeout=LONGEST_WAIT)
        line = await eventually(lambda: next((line for line in logs if "predicate" in line["event"]), None))
        assert line["level"] in {"warning", "error"}
        assert "no luck" in str(line)


@pytest.mark.parametrize(
    ("path", "kind", "version", "is_known"),
    [
        ("apiextensions.k8s.io/v1/customresourcedefinitions", "CustomResourceDefinition", "v1beta1", True),
        ("batch/v1/namespaces/default/cronjobs", "CronJob", "v1beta1", True),
        ("batch/v1/namespaces/default/jobs", "Job", "v1beta1", False),
        ("apps/v1/namespaces/default/daemonsets", "DaemonSet", "v1beta1", False),
        ("apps/v1/namespaces/default/daemonsets", "DaemonSet", "v1beta2", True),
        ("autoscaling/v2/namespaces/default/horizontalpodautoscalers", "HorizontalPodAutoscaler", "v2beta2", False),
        ("autoscaling/v2/namespaces/default/horizontalpodautoscalers", "HorizontalPodAutoscaler", "v1", True),
        ("scheduling.k8s.io/v1/priorityclasses", "PriorityClass", "v1beta1", True),
        ("authorization.k8s.io/v1/selfsubjectaccessreviews", "SelfSubjectAccessReview", "v1beta1", True),
        ("networking.k8s.io/v1/namespaces/default/networkpolicies", "NetworkPolicy", "v1beta1", False),
        ("storage.k8s.io/v1/csinodes", "CSINode", "v1alpha1", False),
        ("storage.k8s.io/v1/volumeattachments", "VolumeAttachment", "v1alpha1", True),
    ],
)
def test_a_version_of_old_is_known_or_not(server, path: str, kind: str, version: str, is_known: bool) -> None:
    group, right = path.split("/")[:2]
    body = {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"name": "old"}}

    with pytest.raises(BadRequest) as caught:
        server.connection.request("POST", f"/apis/{path}", body)

    known = f"the API version in the data ({group}/{version}) does not match the expected API version ({group}/{right})"
    unknown = f'{kind} in version "{version}" cannot be handled as a {kind}: no kind "{kind}" is registered for version'
    assert str(caught.value).startswith(known if is_known else unknown)


@pytest.mark.parametrize(
    ("path", "fields", "place"),
    [
        ("persistentvolumes", {"spec": {"nfs": 1}}, "PersistentVolumeSpec.spec.PersistentVolumeSource.nfs"),
        (
            "namespaces/default/pods",
            {"spec": {"volumes": [{"secret": {"items": [{"key": 1}]}}]}},
            "KeyToPath.spec.volumes.VolumeSource.secret.items.key",
        ),
        (
            "namespaces/default/pods",
            {"spec": {"containers": [{"env": [{"valueFrom": {"configMapKeyRef": {"name": 1}}}]}]}},
            "ConfigMapKeySelector.spec.containers.env.valueFrom.configMapKeyRef.LocalObjectReference.name",
        ),
        (
            "namespaces/default/pods",
            {"spec": {"ephemeralContainers": [{"startupProbe": {"grpc": {"port": "a"}}}]}},
            "GRPCAction.spec.ephemeralContainers.EphemeralContainerCommon.startupProbe.ProbeHandler.grpc.port",
        ),
    ],
)
def test_a_wrong_type_names_the_embedded_structs_of_go(server, path: str, fields: dict[str, Any], place: str) -> None:
    with pytest.raises(BadRequest, match=f"Go struct field {place} of type"):
        server.connection.request("POST", f"/api/v1/{path}", {"metadata": {"name": "one"}, **fields})
