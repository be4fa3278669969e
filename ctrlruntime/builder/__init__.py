"""Builders: say what a controller watches and who reconciles, get the controller."""

from ctrlruntime.builder.controller import Builder, Manager, new_controller_managed_by

__all__ = ["Builder", "Manager", "new_controller_managed_by"]
