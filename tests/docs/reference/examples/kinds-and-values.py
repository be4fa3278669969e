"""Runs after the blocks of docs/reference/examples/kinds-and-values.md, in their namespace."""

import asyncio

from ctrlruntime.testing import Environment


async def run_the_examples(config: ctrl.Config) -> None:
    cluster = ctrl.Cluster(config, scheme=ctrl.Scheme(Backup))
    try:
        await ctrl.install_crds(cluster.client, Backup)
        backup.metadata.namespace = "default"
        await cluster.client.create(backup)
        found = await cluster.api_reader.get(Backup, backup.metadata)
        assert found.spec == backup.spec
        assert found.spec.interval == timedelta(hours=3)
        found.spec.max_bytes = 2**63
        try:
            await cluster.client.update(found)
        except (ctrl.Invalid, ctrl.errors.BadRequest) as error:
            print(error)
        else:
            raise AssertionError(await cluster.api_reader.get(Backup, found.metadata))
    finally:
        await cluster.close()


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
