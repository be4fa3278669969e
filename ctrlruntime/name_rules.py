"""The shapes of names in Kubernetes, and how the API server words them (k8s.io/apimachinery/pkg/util/validation)."""

from __future__ import annotations

import re
from typing import Final

LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
LABEL_1035: Final = r"[a-z]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN: Final = rf"{LABEL}(\.{LABEL})*"
QUALIFIED_NAME: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    f"alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
)
LABEL_1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with "
    f"an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '{LABEL_1035}')"
)
SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
    f"an alphanumeric character (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"
)
WILDCARD_RULE: Final = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case "
    "alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for "
    rf"validation is '\*\.{SUBDOMAIN}')"
)
QUALIFIED_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{QUALIFIED_NAME}')"
)
LABEL_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
    f"an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({QUALIFIED_NAME})?')"
)

_LABEL: Final = re.compile(LABEL)
_LABEL_1035: Final = re.compile(LABEL_1035)
_SUBDOMAIN: Final = re.compile(SUBDOMAIN)
_QUALIFIED_NAME: Final = re.compile(QUALIFIED_NAME)


def is_label(text: str) -> bool:
    """Tell whether a text has the shape of an RFC 1123 label, of any length."""
    return _LABEL.fullmatch(text) is not None


def is_label_1035(text: str) -> bool:
    """Tell whether a text has the shape of an RFC 1035 label, of any length."""
    return _LABEL_1035.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Tell whether a text has the shape of an RFC 1123 subdomain, of any length."""
    return _SUBDOMAIN.fullmatch(text) is not None


def is_qualified_name(text: str) -> bool:
    """Tell whether a text has the shape of a label's value or of the part of its key after the slash, of any length."""
    return _QUALIFIED_NAME.fullmatch(text) is not None
