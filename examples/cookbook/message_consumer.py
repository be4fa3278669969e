"""Message consumer: the operator reads messages of a payment service, and reports in each Order how much is paid.

A message only names the Order. The reconciler then asks the service for the state, as it asks the API server for an object. `Payments` is a
stand-in for the service and its message broker.

- A message can arrive twice, late, or in another order. The reconciler reads the current state, so the result is the same.
- A message can also be lost, for example at a restart. Each Order is reconciled at the start and at a resync, so nothing stays wrong.
- The consumer is a `Runnable` that needs leadership. Another replica would take messages from the broker without a controller for them.
- `put` waits while the controller is far behind. The broker then keeps the messages.
- The call of the service has a timeout. A failure is retried with backoff, like any other exception.

Shows: `mgr.add` with a `Runnable`, `EventChannel`, `source.Channel`, `GenericEvent`, a client of an external API.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime import crd
from ctrlruntime.api import meta
from examples.cookbook import running


class OrderSpec(ctrl.Model):
    amount: Annotated[ctrl.Int64, Field(ge=1)]


class OrderStatus(ctrl.Model):
    paid: ctrl.Int64 = 0


@crd.printcolumn("Amount", ".spec.amount", type="integer")
@crd.printcolumn("Paid", ".status.paid", type="integer")
class Order(ctrl.Object, group="cookbook.example.com", version="v1"):
    """An order that a customer pays."""

    spec: OrderSpec
    status: OrderStatus = Field(default_factory=OrderStatus)


class Payments:
    """The payment service. It sends the key of an Order after each payment."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[ctrl.NamespacedName] = asyncio.Queue()
        self._paid: dict[ctrl.NamespacedName, int] = {}

    def pay(self, order: ctrl.NamespacedName, amount: int) -> None:
        self._paid[order] = self._paid.get(order, 0) + amount
        self.messages.put_nowait(order)

    async def paid(self, order: ctrl.NamespacedName) -> int:
        return self._paid.get(order, 0)


class PaymentConsumer:
    """Makes an event of each message."""

    def __init__(self, payments: Payments, events: ctrl.source.EventChannel[ctrl.PartialObjectMetadata]) -> None:
        self.payments = payments
        self.events = events
        self.log = ctrl.get_logger("payments")

    async def start(self) -> None:
        while True:
            key = await self.payments.messages.get()
            order = ctrl.PartialObjectMetadata(metadata=meta.ObjectMeta(name=key.name, namespace=key.namespace))
            await self.events.put(ctrl.event.GenericEvent.of(order))
            self.payments.messages.task_done()
            self.log.info("message received", order=str(key))


@ctrl.rbac(groups="cookbook.example.com", resources="orders", verbs="get;list;watch")
@ctrl.rbac(groups="cookbook.example.com", resources="orders/status", verbs="update")
class OrderReconciler:
    def __init__(self, client: ctrl.Client, payments: Payments) -> None:
        self.client = client
        self.payments = payments

    async def reconcile(self, request: ctrl.Request) -> None:
        order = await self.client.get_or_none(Order, request)
        if order is None or order.metadata.deletion_timestamp is not None:
            return
        async with asyncio.timeout(10):
            paid = await self.payments.paid(ctrl.object_key(order))
        if order.status.paid != paid:
            order.status.paid = paid
            await self.client.status.update(order)


def setup(mgr: ctrl.Manager, payments: Payments | None = None) -> None:
    """Add the consumer and the controller to a manager. `ctrl manifests` calls this too."""
    payments = payments or Payments()
    events = ctrl.source.EventChannel[ctrl.PartialObjectMetadata]()
    mgr.add(PaymentConsumer(payments, events))
    builder = ctrl.new_controller_managed_by(mgr).for_(Order)
    builder.watches_raw_source(ctrl.source.Channel(events, ctrl.handler.EnqueueRequestForObject()))
    builder.complete(OrderReconciler(mgr.client, payments))


SAMPLE = """
apiVersion: cookbook.example.com/v1
kind: Order
metadata: {name: books, namespace: default}
spec: {amount: 30}
"""


def main() -> None:
    payments = Payments()
    payments.pay(ctrl.NamespacedName("default", "books"), 30)
    running.run(lambda mgr: setup(mgr, payments), Order, sample=SAMPLE, shows="orders")


if __name__ == "__main__":
    main()
