"""Who may change or refuse a write: webhooks."""

from __future__ import annotations

from ctrlruntime.apiserver.admission.admission import Kinds, WebhookAdmission

__all__ = ["Kinds", "WebhookAdmission"]
