"""Who may change or refuse a write: policies and webhooks."""

from __future__ import annotations

from ctrlruntime.apiserver.admission.admission import WebhookAdmission
from ctrlruntime.apiserver.admission.chain import AdmissionChain
from ctrlruntime.apiserver.admission.matching import Kinds
from ctrlruntime.apiserver.admission.mutating_policies import MutatingPolicies
from ctrlruntime.apiserver.admission.validating_policies import ValidatingPolicies

__all__ = ["AdmissionChain", "Kinds", "MutatingPolicies", "ValidatingPolicies", "WebhookAdmission"]
