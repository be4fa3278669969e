"""Runs after the blocks of docs/learn/game.md, in their namespace."""

import asyncio
import pathlib
import re
import textwrap

from ctrlruntime.testing import Environment, eventually
from examples.game import api, controller

page = pathlib.Path("docs/learn/game.md").read_text()
files = "\n".join(file.read_text() for file in pathlib.Path("examples/game").glob("*.py"))
for block in re.findall(r"```python\n(.*?)```", page.partition("\n## Run it\n")[0], re.DOTALL):
    assert block in files or textwrap.indent(block, "    ") in files, block


async def run_the_tutorial(environment: Environment) -> None:
    mgr = ctrl.new_manager(
        ctrl.get_config(str(environment.kubeconfig_path)),
        scheme=ctrl.Scheme(api.Game),
        metrics_bind_address="0",
        webhook=ctrl.webhook.WebhookOptions(port=0, development=ctrl.webhook.DevelopmentMode()),
    )
    controller.setup(mgr, long_way=True)
    async with ctrl.running(mgr):
        game = api.Game.from_yaml(pathlib.Path("examples/game/config/samples/myapp_v1_game.yaml").read_text())
        await mgr.client.create(game)
        assert game.spec.host == "game-sample.default.mygame.io"

        async def runs() -> bool:
            return (await mgr.client.get(api.Game, ctrl.object_key(game))).status.phase == "Running"

        assert await eventually(runs)


with Environment(backend="embedded", crds="examples/game/config/crd/bases") as environment:
    asyncio.run(run_the_tutorial(environment))
