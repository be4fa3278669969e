"""Runs after the blocks of docs/reference/examples/observability.md, in their namespace."""

from ctrlruntime.api import core
from ctrlruntime.testing import Environment

namespaces: list[str] = []


async def list_namespaces(client: ctrl.Client) -> None:
    namespaces.extend(meta.name for meta in (await client.list(core.Namespace)).metadata)


with Environment(backend="embedded") as environment:
    config = ctrl.get_config(str(environment.kubeconfig_path))
    main(lambda: ctrl.new_manager(config, metrics_bind_address="0"), list_namespaces)
assert "default" in namespaces
assert gc.get_threshold()[2] == 100
