"""What the server says of itself: discovery documents, OpenAPI, version."""

from ctrlruntime.apiserver.discovery.documents import Discovery
from ctrlruntime.apiserver.discovery.openapi import OpenAPI

__all__ = ["Discovery", "OpenAPI"]
