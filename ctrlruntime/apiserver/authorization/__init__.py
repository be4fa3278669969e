"""Who may do what."""

from __future__ import annotations

from ctrlruntime.apiserver.authorization.attributes import MASTERS, AuthorizationAttributes, User, user_info
from ctrlruntime.apiserver.authorization.escalation import Escalation
from ctrlruntime.apiserver.authorization.policy import GROUP, bootstrap
from ctrlruntime.apiserver.authorization.rbac import RBAC, RESOURCES, Holdings, refusal
from ctrlruntime.apiserver.authorization.rules import Rule, missing_rules, rule_allows

__all__ = [
    "GROUP",
    "MASTERS",
    "RBAC",
    "RESOURCES",
    "AuthorizationAttributes",
    "Escalation",
    "Holdings",
    "Rule",
    "User",
    "bootstrap",
    "missing_rules",
    "refusal",
    "rule_allows",
    "user_info",
]
