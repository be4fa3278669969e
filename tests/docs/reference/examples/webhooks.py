"""Runs after the blocks of docs/reference/examples/webhooks.md, in their namespace."""

import dataclasses

from ctrlruntime.rest.config import Impersonation
from ctrlruntime.testing import Environment, eventually


async def run_the_examples(config: ctrl.Config) -> None:
    cluster = ctrl.Cluster(config)
    await ctrl.install_crds(cluster.unfenced_client(), Game)
    await cluster.close()
    options = ctrl.webhook.WebhookOptions(port=0, development=ctrl.webhook.DevelopmentMode())
    mgr = ctrl.new_manager(config, scheme=ctrl.Scheme(Game), webhook=options, metrics_bind_address="0")
    setup(mgr)
    register(mgr)
    register_tokens(mgr)
    async with ctrl.running(mgr):

        async def is_asked() -> bool:
            game = Game(metadata=meta.ObjectMeta(name="chess", namespace="default"), spec=GameSpec())
            try:
                await mgr.client.create(game, dry_run=True)
            except ctrl.Forbidden as error:
                return "all licences are in use" in str(error)
            return False

        assert await eventually(is_asked, timeout=20)
        importer = dataclasses.replace(config, impersonate=Impersonation(user="importer", groups=("system:masters",)))
        cluster = ctrl.Cluster(importer, scheme=ctrl.Scheme(Game))
        game = Game(metadata=meta.ObjectMeta(name="chess", namespace="default"), spec=GameSpec())
        imported = await cluster.unfenced_client().create(game)  # the match condition exempts this user
        assert imported.spec.region == "eu"
        await cluster.close()


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
