"""Builders of controllers and webhooks."""

from ctrlruntime.builder.controller import Builder, Manager, new_controller_managed_by

__all__ = ["Builder", "Manager", "new_controller_managed_by"]
