"""Runs after the blocks of docs/how-to/validate-fields.md, in their namespace."""

import asyncio

from ctrlruntime.generate import crds
from ctrlruntime.testing import Environment


class Hosts(ctrl.Object, group="web.example.com", version="v1", plural="hosts"):
    spec: Bounded


warnings: list[str] = []
definitions = crds([Site, Hosts], warn=warnings.append)
assert not warnings, warnings
fields = definitions[1]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
assert fields["minReplicas"]["default"] == 0


class Unaffordable(ctrl.Object, group="web.example.com", version="v1"):
    spec: Unbounded


crds([Unaffordable], warn=warnings.append)
assert "more than 100x" in warnings[0]

with Environment(backend="embedded", crds=definitions) as environment:
    asyncio.run(test_invalid_sites_are_rejected(environment, environment.create_namespace()))
