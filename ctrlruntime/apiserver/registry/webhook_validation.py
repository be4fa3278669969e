"""Validation of webhook configurations, with kube-apiserver's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctrlruntime.apiserver.registry.expressions import REQUEST, Scope, problem
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, invalid_value, required, too_many
from ctrlruntime.go_urls import URLError, parse_url
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    PORT_RANGE,
    choice_causes,
    label_1035_problems,
    qualified_name_causes,
    selector_causes,
    subdomain_causes,
    subdomain_problems,
)

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_MOST_CONDITIONS: Final = 64
_FORM: Final = "desired format: https://host[/path]"


def webhook_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    names: set[str] = set()
    for index, webhook in enumerate(document.get("webhooks") or ()):
        where, name = f"webhooks[{index}]", str(webhook.get("name", ""))
        yield from _name_causes(name, f"{where}.name")
        for number, rule in enumerate(webhook.get("rules") or ()):
            yield from rule_causes(rule, f"{where}.rules[{number}]")
        yield from _policy_causes(webhook, where)
        yield from _client_causes(webhook.get("clientConfig") or {}, f"{where}.clientConfig")
        yield from conditions_causes(webhook.get("matchConditions") or [], f"{where}.matchConditions")
        yield from _version_causes(webhook, f"{where}.admissionReviewVersions")
        if name in names:
            yield duplicate(f"{where}.name", name)
        names.add(name)


def _name_causes(name: str, path: str) -> Iterator[StatusCause]:
    if not name:
        yield required(path)
        return
    wrong = list(subdomain_causes(name, path))
    yield from wrong
    if not wrong and len(name.split(".")) < 3:
        yield invalid_value(path, name, "should be a domain with at least three segments separated by dots")


def _version_causes(webhook: Document, path: str) -> Iterator[StatusCause]:
    versions = webhook.get("admissionReviewVersions") or []
    if not versions:
        yield required(path, "must specify one of v1, v1beta1")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid_value(f"{path}[{index}]", version, "duplicate version")
            continue
        yield from (invalid_value(f"{path}[{index}]", version, problem) for problem in label_1035_problems(version))
    if not {"v1", "v1beta1"} & set(versions):
        yield invalid_value(path, versions, "must include at least one of v1, v1beta1")


def _policy_causes(webhook: Document, path: str) -> Iterator[StatusCause]:
    yield from choice_causes(webhook.get("failurePolicy"), f"{path}.failurePolicy", ("Fail", "Ignore"))
    yield from choice_causes(webhook.get("matchPolicy"), f"{path}.matchPolicy", ("Equivalent", "Exact"))
    effects = webhook.get("sideEffects")
    if effects is None:
        yield required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
    else:
        yield from choice_causes(effects, f"{path}.sideEffects", ("None", "NoneOnDryRun"))
    timeout = webhook.get("timeoutSeconds", 10)
    if not 1 <= timeout <= 30:
        yield invalid_value(f"{path}.timeoutSeconds", timeout, "the timeout value must be between 1 and 30 seconds")
    for name in ("namespaceSelector", "objectSelector"):
        yield from selector_causes(webhook.get(name), f"{path}.{name}")
    if webhook.get("reinvocationPolicy") is not None:
        yield from choice_causes(webhook["reinvocationPolicy"], f"{path}.reinvocationPolicy", ("IfNeeded", "Never"))


def rule_causes(rule: Document, path: str) -> Iterator[StatusCause]:
    operations = rule.get("operations") or []
    if not operations:
        yield required(f"{path}.operations")
    yield from _star_causes(operations, f"{path}.operations", "operations")
    for index, operation in enumerate(operations):
        yield from choice_causes(operation, f"{path}.operations[{index}]", _OPERATIONS)
    for name, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(name) or []
        if not values:
            yield required(f"{path}.{name}")
        yield from _star_causes(values, f"{path}.{name}", what)
        if name == "apiVersions":
            yield from (required(f"{path}.{name}[{index}]") for index, value in enumerate(values) if not value)
    resources = rule.get("resources") or []
    if not resources:
        yield required(f"{path}.resources")
    yield from _resource_causes(resources, f"{path}.resources")
    if rule.get("scope") is not None:
        yield from choice_causes(rule["scope"], f"{path}.scope", ("*", "Cluster", "Namespaced"))


def _star_causes(values: list[Any], path: str, what: str) -> Iterator[StatusCause]:
    if len(values) > 1 and "*" in values:
        yield invalid_value(path, values, f"if '*' is present, must not specify other {what}")


def _resource_causes(resources: list[str], path: str) -> Iterator[StatusCause]:
    """A star covers what stands beside it, and then nothing may stand beside it."""
    for index, resource in enumerate(resources):
        name, slash, sub = resource.partition("/")
        if not resource:
            yield required(f"{path}[{index}]")
        elif slash:
            for wider in (f"{name}/*", f"*/{sub}"):
                if wider in resources[:index]:
                    text = f"if '{wider}' is present, must not specify {resource}"
                    yield invalid_value(f"{path}[{index}]", resource, text)
    if "*/*" in resources and len(resources) > 1:
        yield invalid_value(path, resources, "if '*/*' is present, must not specify other resources")
    whole = [resource for resource in resources if resource and "/" not in resource]
    if "*" in whole and whole[-1] != "*":  # upstream remembers the last one
        text = "if '*' is present, must not specify other resources without subresources"
        yield invalid_value(path, resources, text)


def _client_causes(client: Document, path: str) -> Iterator[StatusCause]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from url_causes(str(url), f"{path}.url")
    elif service is not None:
        yield from _service_causes(service, f"{path}.service")


def url_causes(url: str, path: str) -> Iterator[StatusCause]:
    """An address a webhook is called at."""
    try:
        parts = parse_url(url)
    except URLError as error:
        yield required(path, f"url must be a valid URL: {error}; {_FORM}")
        return
    if parts.scheme != "https":
        yield invalid_value(path, parts.scheme, f"'https' is the only allowed URL scheme; {_FORM}")
    if not parts.host:
        yield invalid_value(path, "", f"host must be specified; {_FORM}")
    if parts.user is not None:
        yield invalid_value(path, parts.user, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid_value(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid_value(path, parts.query, "query parameters are not permitted in the URL")


def _service_causes(service: Document, path: str) -> Iterator[StatusCause]:
    # kube-apiserver takes one for the other when it names what is missing.
    if not service.get("namespace"):
        yield required(f"{path}.name")
    if not service.get("name"):
        yield required(f"{path}.namespace")
    port = service.get("port", 443)
    if not 0 < port < 65536:
        yield invalid_value(f"{path}.port", port, f"port is not valid: {PORT_RANGE}")
    text = service.get("path")
    if not text:
        return
    if not text.startswith("/"):
        yield invalid_value(f"{path}.path", text, "must start with a '/'")
    if text == "/":
        return
    for index, segment in enumerate(text[1:].removesuffix("/").split("/")):
        if not segment:
            yield invalid_value(f"{path}.path", text, f"segment[{index}] may not be empty")
        else:
            for problem in subdomain_problems(segment):
                yield invalid_value(f"{path}.path", text, f"segment[{index}]: {problem}")


def conditions_causes(conditions: list[Document], path: str, scope: Scope = REQUEST) -> Iterator[StatusCause]:
    if len(conditions) > _MOST_CONDITIONS:
        yield too_many(path, len(conditions), _MOST_CONDITIONS)
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        yield from _condition_causes(condition, f"{path}[{index}]", scope)
        name = str(condition.get("name", ""))
        if name and name in names:
            yield duplicate(f"{path}[{index}].name", name)
        names.add(name)


def _condition_causes(condition: Document, path: str, scope: Scope) -> Iterator[StatusCause]:
    expression = str(condition.get("expression", ""))
    if not expression.strip():
        yield required(f"{path}.expression")
    else:
        found = problem(expression, scope)
        if found:
            yield invalid_value(f"{path}.expression", expression, found)
    if not condition.get("name"):
        yield required(f"{path}.name")
    else:
        yield from qualified_name_causes(condition["name"], f"{path}.name")
