"""DNS record: the operator publishes the address of each DNSRecord in a DNS service, and withdraws it when the object is deleted.

`DNS` replaces the client of a service outside the cluster. Its records are in memory. In an operator, pass a real client to `setup`.

- The finalizer is added before the address is published. Otherwise a deletion in between would leave the address in the service.
- The service sends no events. So the operator checks each address at an interval, and restores one that was changed or removed there.
- A transient error is not caught: the controller retries it with backoff. It also ends and retries a reconcile that takes 20 seconds.
- A name that the service rejects is a `TerminalError`, and a condition for the user. Only a new object can fix it.
- The host has the namespace and name of the object. So two objects cannot overwrite each other in the service.

Shows: `ctrl.Finalizers`, `TerminalError`, `Result(requeue_after=…)`, a client of an external API, `reconciliation_timeout`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime import crd
from ctrlruntime.api import meta
from examples.cookbook import running

FINALIZER = "cookbook.example.com/dns-record"


class RejectedError(Exception):
    """The DNS service does not accept the record. A retry does not help."""


class DNS:
    """A DNS service. Each call can raise OSError, and can be repeated."""

    def __init__(self) -> None:
        self.records: dict[str, str] = {}

    async def ensure(self, host: str, address: str) -> None:
        if any(len(label) > 63 for label in host.split(".")):
            raise RejectedError(f"{host} has a label of more than 63 characters")
        self.records[host] = address

    async def withdraw(self, host: str) -> None:
        self.records.pop(host, None)


class DNSRecordSpec(ctrl.Model):
    address: Annotated[str, crd.Format("ipv4")]


class DNSRecordStatus(ctrl.Model):
    conditions: Annotated[list[meta.Condition], crd.ListMap("type")] = Field(default_factory=list[meta.Condition])


@crd.printcolumn("Address", ".spec.address")
@crd.printcolumn("Published", '.status.conditions[?(@.type=="Published")].status')
class DNSRecord(ctrl.Object, group="cookbook.example.com", version="v1"):
    """The address of the host NAME.NAMESPACE.example.com."""

    spec: DNSRecordSpec
    status: DNSRecordStatus = Field(default_factory=DNSRecordStatus)


@ctrl.rbac(groups="cookbook.example.com", resources="dnsrecords", verbs="update")
@ctrl.rbac(groups="cookbook.example.com", resources="dnsrecords/status", verbs="update")
class DNSRecordReconciler:
    def __init__(self, client: ctrl.Client, dns: DNS, interval: float) -> None:
        self.client = client
        self.dns = dns
        self.interval = interval
        self.finalizers = ctrl.Finalizers[DNSRecord]({FINALIZER: lambda record: dns.withdraw(host_of(record))})

    async def reconcile(self, request: ctrl.Request) -> ctrl.Result | None:
        record = await self.client.get_or_none(DNSRecord, request)
        if record is None:
            return None
        await self.finalizers.reconcile(self.client, record)
        if record.metadata.deletion_timestamp is not None:
            return None
        host, address = host_of(record), record.spec.address
        try:
            await self.dns.ensure(host, address)
        except RejectedError as error:
            await self.report(record, False, "Rejected", str(error))
            raise ctrl.TerminalError(str(error)) from error
        await self.report(record, True, "Published", f"{host} has the address {address}")
        return ctrl.Result(requeue_after=self.interval)

    async def report(self, record: DNSRecord, ready: bool, reason: str, message: str) -> None:
        conditions, generation = record.status.conditions, record.metadata.generation
        if ctrl.set_condition(
            conditions, "Published", ready, reason=reason, message=message, observed_generation=generation
        ):
            await self.client.status.update(record)


def host_of(record: DNSRecord) -> str:
    return f"{record.metadata.name}.{record.metadata.namespace}.example.com"


def setup(mgr: ctrl.Manager, dns: DNS | None = None, interval: float = 300) -> None:
    """Add the controller to a manager. `ctrl manifests` calls this too."""
    builder = ctrl.new_controller_managed_by(mgr).for_(DNSRecord).with_options(reconciliation_timeout=20)
    builder.complete(DNSRecordReconciler(mgr.client, dns or DNS(), interval))


SAMPLE = """
apiVersion: cookbook.example.com/v1
kind: DNSRecord
metadata: {name: shop, namespace: default}
spec: {address: 192.0.2.7}
"""


def main() -> None:
    running.run(setup, DNSRecord, sample=SAMPLE, shows="dnsrecords")


if __name__ == "__main__":
    main()
