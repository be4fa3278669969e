"""Each recipe as a process on the embedded server: `python -m examples.cookbook.NAME --embedded`."""

from __future__ import annotations

import pytest
from example_process import Starter

from examples.cookbook import RECIPES

LAST_WRITE = {
    "hello_configmap": "configmap: patch ConfigMap default/ada",
    "website": "website: update Website/status default/shop",
    "scheduled_backup": "scheduledbackup: update ScheduledBackup/status default/orders",
    "ttl_cleaner": "ttl: delete ConfigMap default/preview",
    "config_reloader": "deployment: patch Deployment default/web",
    "generated_password": "password: update Password/status default/database",
    "message_consumer": "order: update Order/status default/books",
    "node_index": "node: patch Node node-1",
    "secret_copier": "secret-copier: create Secret shop/registry",
    "namespace_provisioner": "team: update Team/status penguins",
    "dns_record": "dnsrecord: update DNSRecord/status default/shop",
    "image_policy": 'images=["registry.example.com/shop:latest"] errors=0',
    "crontab_versions": "kind=CronTab name=nightly",
    "cluster_mirror": "cluster-mirror: create ConfigMap default/settings",
}


def test_last_write_of_each_recipe_is_known():
    assert set(LAST_WRITE) == set(RECIPES)


@pytest.mark.parametrize("recipe", RECIPES)
async def test_recipe_prints_what_it_writes_for_its_sample(recipe, example_forks, tmp_path):
    starter = Starter(example_forks, f"examples.cookbook.{recipe}", tmp_path)
    operator = starter.embedded()
    try:
        await operator.says(LAST_WRITE[recipe])
        operator.assert_a_clean_end()
    finally:
        starter.end()
