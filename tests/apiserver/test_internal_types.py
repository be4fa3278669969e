from __future__ import annotations

from ctrlruntime.apiserver.registry.internal_types import difference, internal, served


def test_every_field_of_the_internal_type_is_printed_in_the_order_of_go():
    assert internal("apps.DeploymentStrategy", {"type": "Slow"}) == {"Type": "Slow", "RollingUpdate": None}
    shown = internal("apps.DeploymentStrategy", {"type": "Slow", "rollingUpdate": {"maxSurge": "2%"}})
    assert shown["RollingUpdate"] == {"MaxUnavailable": 0, "MaxSurge": "2%"}


def test_an_embedded_struct_lends_its_fields():
    shown = internal("core.Volume", {"name": "v", "emptyDir": {}})
    assert list(shown)[:3] == ["Name", "HostPath", "EmptyDir"]
    assert shown["EmptyDir"] == {"Medium": "", "SizeLimit": None}


def test_metadata_of_a_template_is_printed_as_it_is_served():
    shown = internal("core.PodTemplateSpec", {"metadata": {"labels": {"a": "b"}}, "spec": {}})
    assert list(shown) == ["labels", "Spec"]


def test_the_namespaces_of_the_host_belong_to_the_security_context():
    shown = internal("core.PodSpec", {"hostNetwork": True, "securityContext": {"runAsUser": 5}})
    assert "HostNetwork" not in shown
    assert (shown["SecurityContext"]["HostNetwork"], shown["SecurityContext"]["RunAsUser"]) == (True, 5)
    assert internal("core.PodSpec", {})["SecurityContext"]["HostPID"] is False


def test_a_difference_shows_three_lines_around_it_and_no_files():
    before, after = {"name": "c", "image": "<i>"}, {"name": "c", "image": "j"}
    shown = difference("core.EphemeralContainer", before, after)
    assert shown.startswith('@@ -1,6 +1,6 @@\n {\n  "Name": "c",\n- "Image": "\\u003ci\\u003e",\n+ "Image": "j",\n')
    assert difference("core.EphemeralContainer", before, before) == ""


def test_what_was_printed_can_be_read_whatever_the_case_of_its_names():
    behavior = {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 5}], "selectPolicy": "Max"}}
    kind = "autoscaling.HorizontalPodAutoscalerBehavior"
    assert served(kind, internal(kind, behavior)) == behavior
    assert served(kind, {"SCALEUP": {"selectpolicy": "Min"}}) == {"scaleUp": {"selectPolicy": "Min"}}
    assert served(kind, "text") == {}
