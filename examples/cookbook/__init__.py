"""Recipes: each module is a small, complete operator that you can run with `python -m examples.cookbook.NAME`."""

RECIPES = (
    "hello_configmap",
    "website",
    "secret_copier",
    "namespace_provisioner",
    "scheduled_backup",
    "ttl_cleaner",
    "dns_record",
    "generated_password",
    "config_reloader",
    "image_policy",
    "crontab_versions",
    "node_index",
    "message_consumer",
    "cluster_mirror",
)
"""In the order of the documentation."""
