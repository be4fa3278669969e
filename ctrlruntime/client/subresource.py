"""`client.status` and `client.subresource(name)`: the verbs of one subresource, spelled like those of the object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import TypeVar

from ctrlruntime.client.options import write_options

if TYPE_CHECKING:
    from ctrlruntime.client.api import APIClient
    from ctrlruntime.client.interfaces import FieldValidation
    from ctrlruntime.client.patches import Patch

T = TypeVar("T")


class Subresource:
    """See `SubresourceClient`."""

    def __init__(self, client: APIClient, name: str) -> None:
        self._client = client
        self._name = name

    async def get(self, obj: object, body: type[T]) -> T:
        return await self._client.read_subresource(obj, self._name, body)

    async def create(self, obj: object, body: T, *, dry_run: bool = False, field_owner: str = "") -> T:
        params = write_options(dry_run, field_owner, None)
        return await self._client.write_subresource_body(
            "create", "POST", obj, self._name, body, params, dry_run=dry_run
        )

    async def update(
        self,
        obj: T,
        *,
        body: object | None = None,
        dry_run: bool = False,
        field_owner: str = "",
        field_validation: FieldValidation | None = None,
    ) -> T:
        params = write_options(dry_run, field_owner, field_validation)
        if body is not None:
            await self._client.write_subresource_body("update", "PUT", obj, self._name, body, params, dry_run=dry_run)
            return obj
        return await self._client.write("update", "PUT", obj, params=params, dry_run=dry_run, subresource=self._name)

    async def patch(
        self,
        obj: T,
        patch: Patch,
        *,
        dry_run: bool = False,
        field_owner: str = "",
        force: bool = False,
        field_validation: FieldValidation | None = None,
    ) -> T:
        params = write_options(dry_run, field_owner, field_validation, force=force)
        return await self._client.write_patch(obj, patch, self._name, params, dry_run=dry_run)

    async def apply(self, obj: T, *, field_owner: str = "", force: bool = False, dry_run: bool = False) -> T:
        return await self._client.write_apply(obj, self._name, field_owner, force=force, dry_run=dry_run)
