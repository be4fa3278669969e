"""Webhooks: admission of typed objects and raw requests, conversion, token authentication, and the webhook server."""

from ctrlruntime.webhook.admission import Admission, AdmissionHandler, LogFields, multi_mutating, multi_validating
from ctrlruntime.webhook.authentication import (
    TokenAuthentication,
    TokenRequest,
    TokenResponse,
    authenticated,
    unauthenticated,
)
from ctrlruntime.webhook.conversion import Conversion, ConversionEndpoint, ConversionError
from ctrlruntime.webhook.development import DevelopmentMode
from ctrlruntime.webhook.endpoint import Endpoint, NotReadyError
from ctrlruntime.webhook.field_errors import FieldError, invalid
from ctrlruntime.webhook.registration import MatchCondition, Registration, WebhookRule, default_path, default_rule
from ctrlruntime.webhook.request import AdmissionRequest, Operation, UserInfo
from ctrlruntime.webhook.response import (
    AdmissionResponse,
    Denied,
    Warnings,
    allowed,
    denied,
    errored,
    patch_response,
    patch_response_from_raw,
)
from ctrlruntime.webhook.secret import SecretCertificates
from ctrlruntime.webhook.server import WebhookOptions, WebhookServer
from ctrlruntime.webhook.typed import Defaulter, Validator, defaulting, operations_of, validating

__all__ = [
    "Admission",
    "AdmissionHandler",
    "AdmissionRequest",
    "AdmissionResponse",
    "Conversion",
    "ConversionEndpoint",
    "ConversionError",
    "Defaulter",
    "Denied",
    "DevelopmentMode",
    "Endpoint",
    "FieldError",
    "LogFields",
    "MatchCondition",
    "NotReadyError",
    "Operation",
    "Registration",
    "SecretCertificates",
    "TokenAuthentication",
    "TokenRequest",
    "TokenResponse",
    "UserInfo",
    "Validator",
    "Warnings",
    "WebhookOptions",
    "WebhookRule",
    "WebhookServer",
    "allowed",
    "authenticated",
    "default_path",
    "default_rule",
    "defaulting",
    "denied",
    "errored",
    "invalid",
    "multi_mutating",
    "multi_validating",
    "operations_of",
    "patch_response",
    "patch_response_from_raw",
    "unauthenticated",
    "validating",
]
