"""`ctrl storage`: what is stored, and in which version."""

from __future__ import annotations

import click

from ctrlruntime.cli.connection import cluster_options, with_client
from ctrlruntime.cli.output import say
from ctrlruntime.client.interfaces import Client
from ctrlruntime.project.storage import PAGE, Migration
from ctrlruntime.project.storage import migrate as migrate_objects

__all__ = ["storage"]


@click.group()
def storage() -> None:
    """Look after stored objects."""


@storage.command()
@click.argument("kind")
@cluster_options
@click.option("--dry-run", is_flag=True, help="Let the API server validate each object, and change nothing.")
@click.option(
    "--page-size", default=PAGE, show_default=True, type=click.IntRange(min=1), help="Number of objects in one request."
)
def migrate(*, kind: str, kubeconfig: str | None, context: str | None, dry_run: bool, page_size: int) -> None:
    """Rewrite every object of KIND in the storage version, and remove other versions from status.storedVersions.

    KIND is the kind, plural or short name of a custom resource, or its full name (memcacheds.cache.example.com) if several API groups have
    this kind. Each object is written back unchanged. Run it after you change the storage version, before you remove the old version.
    """

    async def work(client: Client) -> Migration:
        return await migrate_objects(client, kind, dry_run=dry_run, page_size=page_size, progress=_tell)

    done = with_client(kubeconfig, context, work)
    would = "would be " if dry_run else ""
    gone = f", {done.gone} were deleted meanwhile" if done.gone else ""
    say(f"{done.definition}: {done.written} objects {would}stored in {done.storage_version}{gone}")
    if dry_run:
        say(f"stored versions: {', '.join(done.before)} now, {done.storage_version} after a migration")
    else:
        say(f"stored versions: {', '.join(done.before)} before, {', '.join(done.after)} now")


def _tell(migration: Migration) -> None:
    left = "" if migration.remaining is None else f", about {migration.remaining} left"
    say(f"{migration.written} objects{left}", err=True)
