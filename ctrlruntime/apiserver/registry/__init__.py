"""Resources and the only way to write them."""

from ctrlruntime.apiserver.registry.registry import Registry
from ctrlruntime.apiserver.registry.resources import Resource, Subresource
from ctrlruntime.apiserver.registry.writer import DeleteOptions, WriteOptions, Written

__all__ = ["DeleteOptions", "Registry", "Resource", "Subresource", "WriteOptions", "Written"]
