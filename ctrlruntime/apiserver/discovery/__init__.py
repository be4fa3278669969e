"""What the server says of itself: discovery documents, OpenAPI, version."""

from ctrlruntime.apiserver.discovery.documents import Discovery
from ctrlruntime.apiserver.discovery.openapi import OpenAPI
from ctrlruntime.apiserver.discovery.openapi_v2 import OpenAPIv2

__all__ = ["Discovery", "OpenAPI", "OpenAPIv2"]
