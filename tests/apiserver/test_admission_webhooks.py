from __future__ import annotations

import base64
import json

import pytest
from webhook_receiver import WebhookReceiver

from ctrlruntime.apiserver import Options, ServerThread
from ctrlruntime.apiserver.registry import WriteOptions

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
MUTATING, VALIDATING = f"{ADMISSION}/mutatingwebhookconfigurations", f"{ADMISSION}/validatingwebhookconfigurations"


@pytest.fixture(scope="module")
def receiver():
    with WebhookReceiver(("127.0.0.1", "hooks.default.svc")) as running:
        yield running


@pytest.fixture
def hooks(api, receiver):
    """Register webhooks for one test: hooks(path, name, client=…, resources=…)."""
    made = []

    def register(path, name, **fields):
        rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"]}
        rule["resources"] = fields.pop("resources", ["configmaps"])
        entry = {
            "name": f"{name}.example.com",
            "clientConfig": receiver.client(f"/{name}"),
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **fields,
        }
        api.made(path, {"metadata": {"name": name}, "webhooks": [entry]})
        made.append(f"{path}/{name}")
        return f"/{name}"

    receiver.received.clear()
    receiver.answers.clear()
    yield register
    for path in made:
        api.delete(path)


def deny(_):
    return {"allowed": False, "status": {"message": "no"}}


def test_a_configuration_acts_on_the_next_request_and_no_longer_than_it_is_there(api, ns, make, receiver, hooks):
    receiver.answers[hooks(VALIDATING, "now")] = deny
    refused = api.post(f"/api/v1/{ns}/configmaps", make.config_map("a"))

    api.delete(f"{VALIDATING}/now")

    assert refused.code == 400
    assert refused.message == 'admission webhook "now.example.com" denied the request: no'
    assert api.post(f"/api/v1/{ns}/configmaps", make.config_map("a")).code == 201


def test_a_changed_configuration_acts_on_the_next_request(api, ns, make, receiver, hooks):
    path = hooks(VALIDATING, "changing", resources=["secrets"])
    receiver.answers[path] = deny

    found = api.get(f"{VALIDATING}/changing").body
    found["webhooks"][0]["rules"][0]["resources"] = ["configmaps"]
    api.put(f"{VALIDATING}/changing", found)

    assert api.post(f"/api/v1/{ns}/configmaps", make.config_map("a")).code == 400
    assert api.post(f"/api/v1/{ns}/secrets", {"metadata": {"name": "a"}}).code == 201


def test_what_no_rule_names_is_not_even_considered(api, thread, hooks):
    hooks(VALIDATING, "narrow", resources=["pods/status"])
    admission = thread.server.registry.extensions.admission

    assert admission.is_wanted("", "pods", "status", "UPDATE")
    assert not admission.is_wanted("", "pods", "ephemeralcontainers", "UPDATE")
    assert not admission.is_wanted("", "configmaps", "", "CREATE")
    assert not admission.is_wanted("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "CREATE")


def test_events_of_both_groups_are_one_matter(api, thread, hooks):
    hooks(VALIDATING, "events", resources=["events"])
    admission = thread.server.registry.extensions.admission

    assert admission.is_wanted("events.k8s.io", "events", "", "CREATE")


def test_a_write_that_met_another_is_asked_about_again(api, ns, make, receiver, hooks):
    path = f"/api/v1/{ns}/configmaps/raced"
    api.made(f"/api/v1/{ns}/configmaps", make.config_map("raced", k="0"))
    hook = hooks(VALIDATING, "raced")
    other = make.client(api.thread)
    seen = []

    def interfere(review):
        seen.append(review["request"]["object"]["data"])
        if len(seen) == 1:
            found = other.get(path).body
            found["data"]["k"] = "1"
            writer, resource = (
                api.server.registry.writer,
                api.server.registry.canonical("", "configmaps"),
            )
            name, space = "raced", found["metadata"]["namespace"]
            api.call(lambda: writer.update_directly(resource, space, name, lambda _: found, WriteOptions()))
        return {"allowed": True, "warnings": [f"look {len(seen)}"]}

    receiver.answers[hook] = interfere

    answer = api.patch(path, {"data": {"mine": "1"}})

    other.close()
    assert answer.body["data"] == {"k": "1", "mine": "1"}
    assert seen == [{"k": "0", "mine": "1"}, {"k": "1", "mine": "1"}]
    assert answer.warnings == ['299 - "look 2"']


def test_many_warnings_are_cut_together(api, ns, make, receiver, hooks):
    path = hooks(VALIDATING, "wordy")
    receiver.answers[path] = lambda _: {"allowed": True, "warnings": [f"{n:02}" + "x" * 400 for n in range(20)]}

    warnings = api.post(f"/api/v1/{ns}/configmaps", make.config_map("a")).warnings

    assert len(warnings) == 16
    assert all(len(warning) == len('299 - ""') + 256 for warning in warnings)


def test_a_service_is_called_where_it_was_routed(api, thread, ns, make, receiver, hooks):
    service = {"namespace": "default", "name": "hooks", "path": "/routed"}
    hooks(VALIDATING, "service", clientConfig={"service": service, "caBundle": receiver.ca_bundle})
    receiver.answers["/routed"] = deny
    path = f"/api/v1/{ns}/configmaps"

    before = api.post(path, make.config_map("a"))
    api.call(lambda: thread.server.route_service("default/hooks:443", f"127.0.0.1:{receiver.port}"))
    during = api.post(path, make.config_map("a"))
    api.call(lambda: thread.server.route_service("default/hooks:443", ""))
    after = api.post(path, make.config_map("a"))

    assert before.message.endswith('service "hooks" not found')
    assert during.message.endswith("denied the request: no")
    assert after.message == before.message


def test_conditions_are_compiled_once_and_decide_before_the_call(api, ns, make, receiver, hooks):
    conditions = [{"name": "c", "expression": "object.data.k == 'seen'"}]
    path = hooks(VALIDATING, "conditional", matchConditions=conditions)

    for name, value in (("a", "unseen"), ("b", "seen"), ("c", "unseen")):
        api.made(f"/api/v1/{ns}/configmaps", make.config_map(name, k=value))

    assert [one.request["name"] for one in receiver.at(path)] == ["b"]


def test_a_webhook_of_a_plugin_that_is_off_is_not_called(receiver, make):
    options = Options(controllers=[], disabled_admission=["ValidatingAdmissionWebhook"])
    with ServerThread(options) as thread:
        api = make.client(thread)
        receiver.answers["/off"] = deny
        entry = {
            "name": "off.example.com",
            "clientConfig": receiver.client("/off"),
            "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        api.made(VALIDATING, {"metadata": {"name": "off"}, "webhooks": [entry]})

        code = api.post("/api/v1/namespaces/default/configmaps", make.config_map("a")).code

        api.close()
    assert code == 201


def test_a_container_that_a_webhook_adds_gets_the_default_limits(api, ns, receiver, hooks):
    """kube-apiserver asks its own plugins again after a webhook has changed the object."""
    sidecar = [{"op": "add", "path": "/spec/containers/-", "value": {"name": "side", "image": "s"}}]
    patch = base64.b64encode(json.dumps(sidecar).encode()).decode()
    answer = {"allowed": True, "patchType": "JSONPatch", "patch": patch}
    receiver.answers[hooks(MUTATING, "side", resources=["pods"])] = lambda _: answer
    limits = {"limits": [{"type": "Container", "default": {"cpu": "2"}}]}
    api.made(f"/api/v1/{ns}/limitranges", {"metadata": {"name": "l"}, "spec": limits})

    spec = {"containers": [{"name": "c", "image": "i"}]}
    made = api.made(f"/api/v1/{ns}/pods", {"metadata": {"name": "p"}, "spec": spec})

    asked = [one["resources"] for one in made["spec"]["containers"]]
    assert asked == [{"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}] * 2
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"].endswith("cpu limit for container side")


def test_a_reset_forgets_webhooks(receiver, make):
    with ServerThread(Options(controllers=[])) as thread:
        api = make.client(thread)
        receiver.answers["/reset"] = deny
        entry = {
            "name": "reset.example.com",
            "clientConfig": receiver.client("/reset"),
            "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        api.made(VALIDATING, {"metadata": {"name": "reset"}, "webhooks": [entry]})
        refused = api.post("/api/v1/namespaces/default/configmaps", make.config_map("a")).code

        thread.reset()

        assert refused == 400
        assert api.post("/api/v1/namespaces/default/configmaps", make.config_map("a")).code == 201
        api.close()


def test_a_data_file_and_a_reset_bring_back_policies(tmp_path, make):
    options = Options(controllers=[], data=tmp_path / "data")
    maps, policy = "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "no"}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false"}]}
    codes = []
    with ServerThread(options) as thread:
        api = make.client(thread)
        api.made(f"{ADMISSION}/validatingadmissionpolicies", {**policy, "spec": spec})
        bound = {**policy, "spec": {"policyName": "no", "validationActions": ["Deny"]}}
        api.made(f"{ADMISSION}/validatingadmissionpolicybindings", bound)
        codes.append(api.post(maps, make.config_map("a")).code)
        api.close()

    with ServerThread(options) as thread:
        api = make.client(thread)
        codes.append(api.post(maps, make.config_map("a")).code)
        thread.reset()
        codes.append(api.post(maps, make.config_map("a")).code)
        api.close()

    assert codes == [422, 422, 201]


@pytest.mark.parametrize(("reinvocation", "label"), [("IfNeeded", "new"), ("Never", "old")])
def test_a_policy_looks_again_at_what_a_webhook_changed(api, ns, make, receiver, hooks, reinvocation, label):
    def change(_):
        patch = b'[{"op": "replace", "path": "/data/k", "value": "new"}]'
        return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}

    receiver.answers[hooks(MUTATING, "changes")] = change
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    expression = "Object{metadata: Object.metadata{labels: {'k': object.data.k}}}"
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "mutations": [mutation], "reinvocationPolicy": reinvocation}
    policies, bindings = f"{ADMISSION}/mutatingadmissionpolicies", f"{ADMISSION}/mutatingadmissionpolicybindings"
    api.made(policies, {"metadata": {"name": "label"}, "spec": spec})
    api.made(bindings, {"metadata": {"name": "label"}, "spec": {"policyName": "label"}})

    answer = api.post(f"/api/v1/{ns}/configmaps", make.config_map("a", k="old"))

    api.delete(f"{policies}/label")
    api.delete(f"{bindings}/label")
    assert answer.body["data"] == {"k": "new"}
    assert answer.body["metadata"]["labels"] == {"k": label}
