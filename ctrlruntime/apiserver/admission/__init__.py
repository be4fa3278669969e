"""Who may change or refuse a write: policies and webhooks."""

from __future__ import annotations

from ctrlruntime.apiserver.admission.admission import Kinds, WebhookAdmission
from ctrlruntime.apiserver.admission.chain import AdmissionChain
from ctrlruntime.apiserver.admission.policies import PolicyAdmission

__all__ = ["AdmissionChain", "Kinds", "PolicyAdmission", "WebhookAdmission"]
