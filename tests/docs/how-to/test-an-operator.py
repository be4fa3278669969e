"""Runs after the blocks of docs/how-to/test-an-operator.md, in their namespace."""

import asyncio

with environment:
    asyncio.run(test_the_server_knows_our_namespace(environment, environment.create_namespace()))
    asyncio.run(test_a_config_map_expires(environment, environment.create_namespace()))
