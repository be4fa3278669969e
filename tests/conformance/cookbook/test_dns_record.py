from __future__ import annotations

from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import meta
from ctrlruntime.testing import eventually, second_pass
from examples.cookbook import dns_record
from examples.cookbook.dns_record import DNS, DNSRecord, DNSRecordSpec


class FlakyDNS(DNS):
    def __init__(self) -> None:
        super().__init__()
        self.failures = 2

    async def ensure(self, host: str, address: str) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionResetError("the DNS service is restarting")
        await super().ensure(host, address)


async def test_dns_record(operator, find, client, namespace):
    dns = FlakyDNS()
    host = f"shop.{namespace}.example.com"

    def record(name: str) -> DNSRecord:
        metadata = meta.ObjectMeta(name=name, namespace=namespace)
        return DNSRecord(metadata=metadata, spec=DNSRecordSpec(address="192.0.2.7"))

    def has(reason: str):
        def check(found: DNSRecord) -> bool:
            condition = ctrl.find_condition(found.status.conditions, "Published")
            is_current = condition is not None and condition.observed_generation == found.metadata.generation
            return is_current and condition.reason == reason

        return check

    async def is_gone(key: ctrl.ObjectKey) -> bool:
        return await client.get_or_none(DNSRecord, key) is None

    async with operator(dns_record, setup=lambda mgr: dns_record.setup(mgr, dns, interval=0.1)) as mgr:
        shop = await client.create(record("shop"))
        await find(DNSRecord, shop.metadata, has("Published"))
        assert (dns.records, dns.failures) == ({host: "192.0.2.7"}, 0)

        await client.patch(shop, ctrl.merge_patch({"spec": {"address": "192.0.2.8"}}))
        await eventually(lambda: dns.records == {host: "192.0.2.8"}, timeout=LONGEST_WAIT)
        dns.records.clear()
        await eventually(lambda: dns.records == {host: "192.0.2.8"}, timeout=LONGEST_WAIT)

        rejected = await client.create(record("-".join(["wonderful"] * 7)))
        await find(DNSRecord, rejected.metadata, has("Rejected"))
        blog = await client.create(record("blog"))
        await find(DNSRecord, blog.metadata, has("Published"))
        for deleted in (rejected, blog):
            await client.delete(deleted)
            await eventually(lambda key=deleted.metadata: is_gone(key), timeout=LONGEST_WAIT)
        assert dns.records == {host: "192.0.2.8"}

        await find(DNSRecord, shop.metadata, has("Published"))
        assert await second_pass(mgr) == []
