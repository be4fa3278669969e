"""Resources and the only way to write them."""

from ctrlruntime.apiserver.registry.registry import Registry
from ctrlruntime.apiserver.registry.resources import Resource, Subresource
from ctrlruntime.apiserver.registry.writes import DeleteOptions, Edit, SubresourceView, WriteOptions, Written

__all__ = ["DeleteOptions", "Edit", "Registry", "Resource", "Subresource", "SubresourceView", "WriteOptions", "Written"]
