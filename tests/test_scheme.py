from __future__ import annotations

import pytest

from ctrlruntime.api import GroupVersionKind, Object, PartialObjectMetadata, Unstructured, apps, core, gvk_for
from ctrlruntime.api.autoscaling import v1 as autoscaling_v1
from ctrlruntime.errors import NotRegisteredError
from ctrlruntime.scheme import Scheme, default_scheme


class Widget(Object, group="example.com", version="v1"): ...


class WidgetV2(Object, group="example.com", version="v2", kind="Widget"): ...


class OtherWidget(Object, group="example.com", version="v1", kind="Widget"): ...


def test_built_in_kinds_are_known_without_registering() -> None:
    scheme = default_scheme()

    assert scheme.class_for(GroupVersionKind("apps", "v1", "Deployment")) is apps.Deployment
    assert scheme.class_for(gvk_for(autoscaling_v1.HorizontalPodAutoscaler)) is autoscaling_v1.HorizontalPodAutoscaler
    assert scheme.gvk_for(core.Pod()) == GroupVersionKind("", "v1", "Pod")
    assert apps.Deployment in scheme


def test_a_registered_class_is_found_both_ways() -> None:
    scheme = Scheme(Widget)

    assert scheme.class_for(GroupVersionKind("example.com", "v1", "Widget")) is Widget
    assert scheme.gvk_for(Widget) == scheme.gvk_for(Widget()) == GroupVersionKind("example.com", "v1", "Widget")
    assert list(scheme) == [Widget]


def test_a_class_that_is_not_registered_says_what_to_call() -> None:
    with pytest.raises(NotRegisteredError, match=r"Widget is not in the Scheme; call scheme\.register\(Widget\)"):
        Scheme().gvk_for(Widget)
    assert Widget not in Scheme()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (GroupVersionKind("example.com", "v3", "Widget"), "has the kind in version v1, v2"),
        (GroupVersionKind("example.com", "v1", "Widgets"), r"there is a Widget.*Unstructured\.of\(\"example.com/v1\""),
        (GroupVersionKind("apps", "v1", "DeploymentSpec"), r"call scheme\.register"),
        (GroupVersionKind("apps", "v1beta1", "Deployment"), r"call scheme\.register"),
    ],
)
def test_an_unknown_kind_says_what_is_near(name: GroupVersionKind, message: str) -> None:
    with pytest.raises(NotRegisteredError, match=message):
        Scheme(Widget, WidgetV2).class_for(name)


def test_two_classes_of_one_kind_are_refused() -> None:
    scheme = Scheme(Widget)

    scheme.register(Widget)
    with pytest.raises(ValueError, match=r"cannot register .*OtherWidget: .* is registered as .*\.Widget"):
        scheme.register(OtherWidget)
    with pytest.raises(NotRegisteredError, match="Use that class, or a separate Scheme"):
        scheme.gvk_for(OtherWidget)


def test_what_is_no_kind_is_refused() -> None:
    class Mixin(Object): ...

    with pytest.raises(NotRegisteredError, match="is not a kind"):
        Scheme().register(Mixin)
    with pytest.raises(TypeError, match=r"not a subclass of ctrl\.Object"):
        Scheme().register(dict)  # type: ignore[arg-type]


def test_a_registered_class_may_take_the_place_of_a_built_in_one() -> None:
    class Deployment(Object, group="apps", version="v1"): ...

    scheme = Scheme(Deployment)

    assert scheme.class_for(GroupVersionKind("apps", "v1", "Deployment")) is Deployment
    with pytest.raises(
        NotRegisteredError, match=r"ctrlruntime\.api\.apps\.v1\.Deployment is not in the Scheme: its class of"
    ):
        scheme.gvk_for(apps.Deployment)


def test_kinds_without_a_class_need_no_registration() -> None:
    assert Scheme().gvk_for(Unstructured.of("x.io/v1", "X")) == GroupVersionKind("x.io", "v1", "X")
    assert Scheme().gvk_for(PartialObjectMetadata.of(Widget)) == gvk_for(Widget)


def test_schemes_do_not_share_anything() -> None:
    one = default_scheme()
    one.register(Widget)
    copied = one.copy()
    copied.register(WidgetV2)

    assert Widget not in default_scheme()
    assert (WidgetV2 in one, WidgetV2 in copied, Widget in copied) == (False, True, True)
    assert core.Pod not in Scheme(builtin=False)


def test_versions_of_a_kind() -> None:
    assert Scheme(Widget, WidgetV2).versions_of("example.com", "Widget") == ("v1", "v2")
    assert Scheme().versions_of("autoscaling", "HorizontalPodAutoscaler") == ("v1", "v2")


def test_decode_takes_the_class_from_the_bytes() -> None:
    assert isinstance(Scheme().decode(b'{"apiVersion":"v1","kind":"Pod"}'), core.Pod)
    with pytest.raises(NotRegisteredError):
        Scheme().decode(b'{"apiVersion":"x/v1","kind":"Y"}')
