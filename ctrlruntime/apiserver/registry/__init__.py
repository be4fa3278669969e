"""Resources and the only way to write them."""

from ctrlruntime.apiserver.registry.registry import Registry
from ctrlruntime.apiserver.registry.resources import Resource, Subresource
from ctrlruntime.apiserver.registry.writes import DeleteOptions, Edit, Lens, WriteOptions, Written

__all__ = ["DeleteOptions", "Edit", "Lens", "Registry", "Resource", "Subresource", "WriteOptions", "Written"]
