from __future__ import annotations

import asyncio

from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import meta
from ctrlruntime.testing import second_pass
from examples.cookbook import message_consumer
from examples.cookbook.message_consumer import Order, OrderSpec, Payments


async def test_message_consumer(operator, find, client, namespace):
    payments = Payments()
    books = ctrl.NamespacedName(namespace, "books")
    toys = ctrl.NamespacedName(namespace, "toys")
    order = Order(metadata=meta.ObjectMeta(name="books", namespace=namespace), spec=OrderSpec(amount=30))

    async with operator(message_consumer, setup=lambda mgr: message_consumer.setup(mgr, payments)) as mgr:
        await client.create(order)
        payments.pay(books, 10)
        await find(Order, books, lambda found: found.status.paid == 10)
        payments.pay(books, 20)
        paid = await find(Order, books, lambda found: found.status.paid == 30)

        # The message arrives twice more, and one names an Order that does not exist yet.
        payments.messages.put_nowait(books)
        payments.messages.put_nowait(books)
        payments.pay(toys, 5)
        async with asyncio.timeout(LONGEST_WAIT):
            await payments.messages.join()
        assert await second_pass(mgr) == []
        assert (await client.get(Order, books)).metadata.resource_version == paid.metadata.resource_version

        await client.create(Order(metadata=meta.ObjectMeta(name="toys", namespace=namespace), spec=OrderSpec(amount=5)))
        await find(Order, toys, lambda found: found.status.paid == 5)

        # Another client changes the status.
        await client.status.patch(paid, ctrl.merge_patch({"status": {"paid": 0}}))
        await find(Order, books, lambda found: found.status.paid == 30)

        assert await second_pass(mgr) == []
