"""The names of callables in messages and reprs."""

from __future__ import annotations

from functools import partial

import ctrlruntime as ctrl
from ctrlruntime.frames import name_of


class Site:
    def changed(self) -> None: ...


def test_a_callable_is_named_by_its_qualified_name_or_else_by_its_repr():
    nameless = partial(Site.changed)

    assert name_of(Site().changed) == "Site.changed"
    assert name_of(nameless) == repr(nameless)


def test_the_repr_of_an_admission_names_a_handler_without_a_qualified_name():
    class Handler:
        async def __call__(self, request: ctrl.webhook.AdmissionRequest) -> ctrl.webhook.AdmissionResponse:
            return ctrl.webhook.allowed()

        def __repr__(self) -> str:
            return "the handler"

    assert repr(ctrl.webhook.Admission(Handler())) == "Admission(the handler)"
