from __future__ import annotations

import copy

import pytest

NESTED = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "port": {"x-kubernetes-int-or-string": True},
                "maybe": {"type": "string", "nullable": True},
                "sized": {"type": "object", "default": {}, "properties": {"n": {"type": "integer", "default": 7}}},
                "byName": {
                    "type": "object",
                    "additionalProperties": {"type": "object", "properties": {"v": {"type": "string"}}},
                },
                "list": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "v": {"type": "integer", "default": 1}},
                    },
                },
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "when": {"type": "string", "format": "date-time"},
                "embedded": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
            },
        }
    },
}


@pytest.fixture(scope="module")
def nests(thread, make):
    client = make.client(thread)
    client.made(make.definitions, make.definition("nests", "Nest", NESTED))
    client.close()
    return f"/apis/{make.group}/v1"


def nest(make, **spec):
    return {"apiVersion": f"{make.group}/v1", "kind": "Nest", "metadata": {"generateName": "n-"}, "spec": spec}


def test_a_definition_is_served_before_its_create_is_answered(api, ns, make):
    made = api.made(make.definitions, make.definition("gadgets", "Gadget"))
    listed = api.get(f"/apis/{make.group}/v1/{ns}/gadgets")
    stored = api.get(f"{make.definitions}/gadgets.{make.group}").body

    assert listed.body == {
        "apiVersion": f"{make.group}/v1",
        "items": [],
        "kind": "GadgetList",
        "metadata": {"continue": "", "resourceVersion": listed.version},
    }
    assert made["status"]["storedVersions"] == ["v1"]
    assert made["status"]["conditions"] is None
    assert {c["type"]: (c["status"], c["reason"], c["message"]) for c in stored["status"]["conditions"]} == {
        "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
        "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
    }
    assert stored["status"]["acceptedNames"] == {
        "plural": "gadgets",
        "singular": "gadget",
        "kind": "Gadget",
        "listKind": "GadgetList",
    }


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ({"plural": "thieves", "kind": "Widget", "singular": "thief", "listKind": "ThiefList"}, "KindConflict"),
        ({"plural": "thieves", "kind": "Thief", "shortNames": ["widgets"]}, "ShortNamesConflict"),
        ({"plural": "thieves", "kind": "Thief", "singular": "widget"}, "SingularConflict"),
        ({"plural": "thieves", "kind": "Thief", "listKind": "WidgetList"}, "ListKindConflict"),
    ],
)
def test_names_that_clash_are_not_served(api, ns, widgets, make, names, reason):
    api.made(make.definitions, make.definition("thieves", "Thief", names=names))
    path = f"{make.definitions}/thieves.{make.group}"

    conditions = {c["type"]: c for c in api.get(path).body["status"]["conditions"]}

    assert (conditions["NamesAccepted"]["status"], conditions["NamesAccepted"]["reason"]) == ("False", reason)
    assert (conditions["Established"]["status"], conditions["Established"]["reason"]) == ("False", "NotAccepted")
    assert api.get(f"/apis/{make.group}/v1/{ns}/thieves").code == 404
    api.delete(path)


def broken(make, change):
    body = copy.deepcopy(make.definition("bads", "Bad"))
    change(body)
    return body


@pytest.mark.parametrize(
    ("change", "field", "text"),
    [
        (lambda d: d["metadata"].update(name="x"), "metadata.name", 'must be spec.names.plural+"."+spec.group'),
        (
            lambda d: d["spec"]["versions"][0].update(storage=False),
            "spec.versions",
            "must have exactly one version marked as storage",
        ),
        (lambda d: d["spec"].update(scope="Galaxy"), "spec.scope", 'supported values: "Cluster", "Namespaced"'),
        (
            lambda d: d["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].update(spec={}),
            "spec.validation.openAPIV3Schema.properties[spec].type",
            "Required value: must not be empty for specified object fields",
        ),
        (
            lambda d: d["spec"]["versions"][0]["schema"]["openAPIV3Schema"].update(type="string"),
            "spec.validation.openAPIV3Schema.type",
            "must be object at the root",
        ),
        (
            lambda d: d["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].update(l={"type": "array"}),
            "spec.validation.openAPIV3Schema.properties[l].items",
            "Required value: must be specified",
        ),
        (
            lambda d: d["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].update(
                p={"type": "string", "pattern": "(?=x)"}
            ),
            "spec.validation.openAPIV3Schema.properties[p].pattern",
            "must be a valid regular expression",
        ),
        (
            lambda d: d["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].update(
                n={"type": "integer", "default": "x"}
            ),
            "spec.validation.openAPIV3Schema.properties[n].default",
            "must be of type integer",
        ),
        (
            lambda d: d["spec"]["versions"][0].pop("schema"),
            "spec.versions[0].schema.openAPIV3Schema",
            "Required value",
        ),
        (
            lambda d: d["spec"].update(preserveUnknownFields=True),
            "spec.preserveUnknownFields",
            "must be false in order to use",
        ),
        (
            lambda d: d["spec"].update(conversion={"strategy": "Webhook"}),
            "spec.conversion.webhookClientConfig",
            "Required value",
        ),
    ],
)
def test_definitions_that_are_not_structural_are_422(api, make, change, field, text):
    answer = api.post(make.definitions, broken(make, change))

    assert answer.code == 422
    messages = {cause["field"]: cause["message"] for cause in answer.body["details"]["causes"]}
    assert text in messages[field]


def test_group_scope_and_kind_cannot_change(api, make, widgets):
    path = f"{make.definitions}/widgets.{make.group}"

    answer = api.patch(path, {"spec": {"scope": "Cluster"}})

    assert answer.code == 422
    assert answer.causes == [("spec.scope", "FieldValueInvalid")]
    assert api.patch(path, {"spec": {"names": {"kind": "Other"}}}).code == 422


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "spec.size: Required value"),
        ({"size": -1}, "spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0"),
        ({"size": "x"}, 'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'),
        ({"size": True}, 'spec.size: Invalid value: "boolean": spec.size in body must be of type integer: "boolean"'),
        (
            {"size": 1.5},
            (
                '[spec.size: Invalid value: "number": spec.size in body must be of type integer: "number", '
                '<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.size]'
            ),
        ),
        ({"size": None}, "spec.size: Required value"),
        ({"size": 1, "mode": "Z"}, 'spec.mode: Unsupported value: "Z": supported values: "A", "B"'),
        ({"size": 1, "image": ""}, 'spec.image: Invalid value: "": spec.image in body should be at least 1 chars long'),
        ({"size": 1, "image": "x" * 11}, "spec.image: Too long: may not be more than 10 bytes"),
    ],
)
def test_values_are_judged_with_upstreams_words(api, ns, widgets, make, spec, message):
    answer = api.post(f"{widgets}/{ns}/widgets", {**make.widget("w"), "spec": spec})

    assert answer.code == 422
    assert answer.message == f'Widget.{make.group} "w" is invalid: {message}'
    assert answer.body["details"]["kind"] == "Widget"


def test_whole_numbers_may_be_written_as_floats(api, ns, widgets, make):
    answer = api.post(
        f"{widgets}/{ns}/widgets",
        b'{"apiVersion":"%s/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":1e2}}' % make.group.encode(),
    )

    assert b'"size":100}' in answer.raw


def test_unknown_fields_are_pruned_with_a_warning_and_kept_where_preserved(api, ns, nests, make):
    body = nest(
        make, bogus=1, free={"any": {"thing": 1}}, byName={"a": {"v": "x", "w": 1}}, list=[{"name": "a", "x": 1}]
    )

    answer = api.post(f"{nests}/{ns}/nests", body)
    strict = api.post(f"{nests}/{ns}/nests", body, fieldValidation="Strict")

    spec = answer.body["spec"]
    assert spec["free"] == {"any": {"thing": 1}}
    assert spec["byName"] == {"a": {"v": "x"}}
    assert spec["list"] == [{"name": "a", "v": 1}]
    assert sorted(answer.warnings) == [
        r'299 - "unknown field \"spec.bogus\""',
        r'299 - "unknown field \"spec.byName.a.w\""',
        r'299 - "unknown field \"spec.list[0].x\""',
    ]
    assert (strict.code, strict.reason) == (400, "BadRequest")
    assert strict.message.startswith(
        'Nest in version "v1" cannot be handled as a Nest: strict decoding error: unknown field '
    )


def test_defaults_nest_and_nulls_follow_nullable(api, ns, nests, make):
    spec = api.made(f"{nests}/{ns}/nests", nest(make, maybe=None, sized=None))["spec"]

    assert spec == {"maybe": None, "sized": {"n": 7}}


@pytest.mark.parametrize("port", [80, "http"])
def test_int_or_string_takes_both(api, ns, nests, make, port):
    assert api.made(f"{nests}/{ns}/nests", nest(make, port=port))["spec"]["port"] == port


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        (
            {"port": True},
            "spec.port",
            'Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"',
        ),
        ({"list": [{"name": "a"}, {"name": "a"}]}, "spec.list[1]", 'Duplicate value: {"name":"a"}'),
        ({"set": ["a", "b", "a"]}, "spec.set[2]", 'Duplicate value: "a"'),
        (
            {"when": "today"},
            "spec.when",
            'Invalid value: "today": spec.when in body must be of type date-time: "today"',
        ),
        ({"embedded": {"kind": "Pod"}}, "spec.embedded.apiVersion", "Required value"),
        ({"list": [{"v": 1}]}, "spec.list[0].name", "Required value"),
    ],
)
def test_structure_is_judged_too(api, ns, nests, make, spec, field, message):
    answer = api.post(f"{nests}/{ns}/nests", nest(make, **spec))

    assert answer.code == 422
    assert [(c["field"], c["message"]) for c in answer.body["details"]["causes"]] == [(field, message)]


def test_heads_that_do_not_fit(api, ns, widgets, make):
    path = f"{widgets}/{ns}/widgets"

    wrong_version = api.post(path, {**make.widget("w"), "apiVersion": f"{make.group}/v9"})
    wrong_kind = api.post(path, {**make.widget("w"), "kind": "Wodget"})
    no_kind = api.post(path, {"metadata": {"name": "w"}})

    assert wrong_version.message == (
        f"the API version in the data ({make.group}/v9) does not match the expected API version ({make.group}/v1)"
    )
    assert wrong_kind.causes == [("kind", "FieldValueInvalid")]
    assert no_kind.message.startswith(
        "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in "
    )
    assert (wrong_version.code, wrong_kind.code, no_kind.code) == (400, 422, 400)


def test_what_was_wrong_before_and_did_not_change_is_tolerated(api, ns, make):
    body = make.definition("ratchets", "Ratchet")
    api.made(make.definitions, body)
    path = f"/apis/{make.group}/v1/{ns}/ratchets"
    made = {
        "apiVersion": f"{make.group}/v1",
        "kind": "Ratchet",
        "metadata": {"name": "r"},
        "spec": {"size": 1, "image": "old"},
    }
    api.made(path, made)
    tighter = copy.deepcopy(body["spec"]["versions"])
    tighter[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["minimum"] = 5
    api.patch(f"{make.definitions}/ratchets.{make.group}", {"spec": {"versions": tighter}})

    tolerated = api.patch(f"{path}/r", {"spec": {"image": "new"}})
    refused = api.patch(f"{path}/r", {"spec": {"size": 2}})

    assert (tolerated.code, refused.code) == (200, 422)


def test_new_defaults_and_removed_fields_show_on_read(api, ns, make):
    body = make.definition("readers", "Reader")
    api.made(make.definitions, body)
    path = f"/apis/{make.group}/v1/{ns}/readers"
    made = {
        "apiVersion": f"{make.group}/v1",
        "kind": "Reader",
        "metadata": {"name": "r"},
        "spec": {"size": 1, "image": "x"},
    }
    api.made(path, made)
    changed = copy.deepcopy(body["spec"]["versions"])
    properties = changed[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del properties["image"]
    properties["colour"] = {"type": "string", "default": "red"}
    api.patch(f"{make.definitions}/readers.{make.group}", {"spec": {"versions": changed}})

    assert api.get(f"{path}/r").body["spec"] == {"size": 1, "mode": "A", "colour": "red"}
    assert api.get(path).body["items"][0]["spec"] == {"size": 1, "mode": "A", "colour": "red"}


def test_versions_convert_by_name_only(api, ns, make):
    one = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    two = {"type": "object", "properties": {"a": {"type": "string"}, "c": {"type": "string", "default": "new"}}}
    versions = [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": one}, "deprecated": True},
        {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": two}},
        {"name": "v3alpha1", "served": False, "storage": False, "schema": {"openAPIV3Schema": two}},
    ]
    api.made(make.definitions, make.definition("multis", "Multi", versions=versions))
    group = f"/apis/{make.group}"
    body = {"apiVersion": f"{make.group}/v1", "kind": "Multi", "metadata": {"name": "m"}, "a": "1", "b": "2"}

    made = api.post(f"{group}/v1/{ns}/multis", body)
    as_two = api.get(f"{group}/v2/{ns}/multis/m").body

    assert made.warnings == [f'299 - "{make.group}/v1 Multi is deprecated; use {make.group}/v2 Multi"']
    assert (as_two["apiVersion"], as_two["a"]) == (f"{make.group}/v2", "1")
    assert as_two.keys() & {"b", "c"} == set()  # pruned by v2, and only the stored version's defaults are set on a read
    assert api.get(f"{group}/v1/{ns}/multis/m").body["b"] == "2"
    assert api.get(f"{group}/v3alpha1/{ns}/multis").raw == b"404 page not found\n"
    with api.watch(f"{group}/v2/{ns}/multis") as frames:
        assert frames.next()["object"]["apiVersion"] == f"{make.group}/v2"


def test_what_the_stored_version_has_not_is_lost(api, ns, make):
    one = {"type": "object", "properties": {"a": {"type": "string"}, "d": {"type": "string", "default": "stored"}}}
    two = {"type": "object", "properties": {"a": {"type": "string"}, "c": {"type": "string"}, "d": {"type": "string"}}}
    versions = [
        {"name": "v1", "served": False, "storage": True, "schema": {"openAPIV3Schema": one}},
        {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": two}},
    ]
    api.made(make.definitions, make.definition("losers", "Loser", versions=versions))
    path = f"/apis/{make.group}/v2/{ns}/losers"

    made = api.made(
        path, {"apiVersion": f"{make.group}/v2", "kind": "Loser", "metadata": {"name": "l"}, "a": "1", "c": "2"}
    )

    assert {key: made.get(key) for key in ("apiVersion", "a", "c", "d")} == {
        "apiVersion": f"{make.group}/v2",
        "a": "1",
        "c": None,
        "d": "stored",
    }
    assert api.get(f"{path}/l").body == made


def test_scale_paths_of_a_custom_resource(api, ns, make):
    paths = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    body = make.definition("scalers", "Scaler", subresources={"status": {}, "scale": paths})
    api.made(make.definitions, body)
    path = f"/apis/{make.group}/v1/{ns}/scalers"
    made = {
        "apiVersion": f"{make.group}/v1",
        "kind": "Scaler",
        "metadata": {"name": "s"},
        "spec": {"size": 1, "replicas": 2},
    }
    api.made(path, made)
    api.patch(f"{path}/s/status", {"status": {"replicas": 1, "selector": "app=s"}})

    scale = api.get(f"{path}/s/scale").body
    scaled = api.put(f"{path}/s/scale", {**scale, "spec": {"replicas": 6}})

    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 1, "selector": "app=s"}
    assert scaled.code == 200
    stored = api.get(f"{path}/s").body
    assert stored["spec"]["replicas"] == 6
    assert stored["metadata"]["generation"] == 2


def test_subresources_that_are_not_declared_are_404(api, ns, widgets, make):
    api.made(f"{widgets}/{ns}/widgets", make.widget("w"))

    answer = api.get(f"{widgets}/{ns}/widgets/w/scale")

    assert (answer.code, answer.message) == (404, f'widgets.{make.group} "w" not found')


def test_without_a_status_subresource_status_is_an_ordinary_field(api, ns, make):
    api.made(make.definitions, make.definition("plains", "Plain", subresources={}))
    path = f"/apis/{make.group}/v1/{ns}/plains"
    body = {"apiVersion": f"{make.group}/v1", "kind": "Plain", "metadata": {"name": "p"}, "spec": {"size": 1}}

    made = api.made(path, {**body, "status": {"phase": "Ready"}})
    changed = api.patch(f"{path}/p", {"status": {"phase": "Gone"}}).body

    assert made["status"] == {"phase": "Ready"}
    assert changed["metadata"]["generation"] == 2


def test_deleting_a_definition_takes_its_instances_and_ends_its_watches(api, ns, make):
    api.made(make.definitions, make.definition("goners", "Goner"))
    path = f"/apis/{make.group}/v1/{ns}/goners"
    api.made(path, {"apiVersion": f"{make.group}/v1", "kind": "Goner", "metadata": {"name": "g"}, "spec": {"size": 1}})

    with api.watch(path) as frames:
        assert frames.take(1) == [("ADDED", "g")]
        assert api.delete(f"{make.definitions}/goners.{make.group}").code == 200
        assert frames.take(1) == [("DELETED", "g")]
        assert frames.next() is None

    assert api.get(path).code == 404
    assert api.get(f"{make.definitions}/goners.{make.group}").code == 404
    api.made(make.definitions, make.definition("goners", "Goner"))
    assert api.get(path).body["items"] == []


def test_a_held_instance_keeps_its_definition_terminating(api, ns, make):
    api.made(make.definitions, make.definition("holders", "Holder"))
    path, name = f"/apis/{make.group}/v1/{ns}/holders", f"{make.definitions}/holders.{make.group}"
    body = {"apiVersion": f"{make.group}/v1", "kind": "Holder", "metadata": {"name": "h"}, "spec": {"size": 1}}
    held = copy.deepcopy(body)
    held["metadata"]["finalizers"] = ["example.com/hold"]
    api.made(path, held)

    api.delete(name)
    terminating = api.get(name).body
    refused = api.post(path, {**body, "metadata": {"name": "late"}})
    api.patch(f"{path}/h", {"metadata": {"finalizers": None}})

    conditions = {c["type"]: c["status"] for c in terminating["status"]["conditions"]}
    assert conditions["Terminating"] == "True"
    assert refused.code == 403
    assert refused.message.endswith("create not allowed while custom resource definition is terminating")
    assert api.get(name).code == 404


def test_cluster_scoped_kinds(api, make):
    api.made(make.definitions, make.definition("globes", "Globe", scope="Cluster"))
    path = f"/apis/{make.group}/v1/globes"
    api.made(
        path,
        {
            "apiVersion": f"{make.group}/v1",
            "kind": "Globe",
            "metadata": {"name": "g", "namespace": "x"},
            "spec": {"size": 1},
        },
    )

    assert "namespace" not in api.get(f"{path}/g").body["metadata"]
    assert api.get(f"/apis/{make.group}/v1/namespaces/default/globes").code == 404


def test_selectable_fields_and_printer_columns(api, ns, make):
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    extra = {"selectableFields": [{"jsonPath": ".spec.mode"}], "additionalPrinterColumns": columns}
    api.made(make.definitions, make.definition("pickers", "Picker", **extra))
    path = f"/apis/{make.group}/v1/{ns}/pickers"
    for name, mode in (("a", "A"), ("b", "B")):
        head = {"apiVersion": f"{make.group}/v1", "kind": "Picker", "metadata": {"name": name}}
        api.made(path, {**head, "spec": {"size": 3, "mode": mode}})

    picked = api.get(path, fieldSelector="spec.mode=B").body["items"]
    table = api.get(path, headers={"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}).body

    assert [item["metadata"]["name"] for item in picked] == ["b"]
    assert api.get(path, fieldSelector="spec.size=3").message == "field label not supported: spec.size"
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size"]
    assert table["rows"][0]["cells"] == ["a", 3]


def test_names_that_become_free_are_taken_by_who_waits_for_them(api, ns, make):
    api.made(make.definitions, make.definition("owners", "Owner", names={"shortNames": ["own"]}))
    api.made(make.definitions, make.definition("waiters", "Waiter", names={"shortNames": ["own"]}))
    waiter = f"{make.definitions}/waiters.{make.group}"

    def names_accepted():
        conditions = api.get(waiter).body["status"]["conditions"]
        return next(c["status"] for c in conditions if c["type"] == "NamesAccepted")

    before = names_accepted(), api.get(waiter).body["status"]["acceptedNames"]
    api.patch(f"{make.definitions}/owners.{make.group}", {"spec": {"names": {"shortNames": None}}})

    assert before == ("False", {"plural": "waiters", "singular": "waiter", "kind": "Waiter", "listKind": "WaiterList"})
    assert names_accepted() == "True"
    assert api.get(f"/apis/{make.group}/v1/{ns}/waiters").code == 200


def test_a_definition_whose_conditions_a_client_empties_is_not_served(api, ns, make):
    api.made(make.definitions, make.definition("emptied", "Emptied"))
    path = f"{make.definitions}/emptied.{make.group}"
    api.patch(f"{path}/status", {"status": {"conditions": []}})
    unserved = api.get(f"/apis/{make.group}/v1/{ns}/emptied").code

    established = [
        {
            "type": "Established",
            "status": "True",
            "reason": "Me",
            "message": "m",
            "lastTransitionTime": "2024-01-01T00:00:00Z",
        }
    ]
    api.patch(f"{path}/status", {"status": {"conditions": established}})

    assert unserved == 404
    assert api.get(f"/apis/{make.group}/v1/{ns}/emptied").code == 200


def test_a_rule_refuses_an_object(api, ns, make):
    rules = [{"rule": "self.n > 0", "messageExpression": "'n is ' + (self.n < 0 ? 'negative' : 'zero')"}]
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"n": {"type": "integer"}}, "x-kubernetes-validations": rules}
        },
    }
    api.made(make.definitions, make.definition("ruled", "Ruled", schema))
    path = f"/apis/{make.group}/v1/{ns}/ruled"
    body = {"apiVersion": f"{make.group}/v1", "kind": "Ruled", "metadata": {"name": "r"}}

    refused = api.post(path, {**body, "spec": {"n": 0}})

    assert (refused.code, refused.message) == (
        422,
        f'Ruled.{make.group} "r" is invalid: spec: Invalid value: n is zero',
    )
    assert api.post(path, {**body, "spec": {"n": 1}}).code == 201


def test_rules_in_cel_are_stored_and_published(api, make):
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"n": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": "self.n > 0"}],
            }
        },
    }
    made = api.made(make.definitions, make.definition("rules", "Rule", schema))

    stored = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert stored["x-kubernetes-validations"] == [{"rule": "self.n > 0"}]


def test_a_default_of_the_whole_status_stands_after_the_create(api, ns, make):
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
            "status": {"type": "object", "default": {"phase": "New"}, "properties": {"phase": {"type": "string"}}},
        },
    }
    api.made(make.definitions, make.definition("starters", "Starter", schema))
    path = f"/apis/{make.group}/v1/{ns}/starters"
    body = {
        "apiVersion": f"{make.group}/v1",
        "kind": "Starter",
        "metadata": {"name": "s"},
        "status": {"phase": "Forged"},
    }

    assert api.made(path, body)["status"] == {"phase": "New"}
