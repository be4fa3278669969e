"""Claims, classes, templates and slices of devices (resource.k8s.io), good and bad: a part of `builtin_objects.CASES`."""

from __future__ import annotations

from typing import Any

from builtin_case import Case, Document

_CLAIMS = "resource.k8s.io/v1/resourceclaims"
_TEMPLATES = "resource.k8s.io/v1/resourceclaimtemplates"
_CLASSES = "/resource.k8s.io/v1/deviceclasses"
_SLICES = "/resource.k8s.io/v1/resourceslices"
_LONG = "a" * 64
_UID = "00000000-0000-4000-8000-000000000001"


def _cel(*expressions: str) -> list[Document]:
    return [{"cel": {"expression": each}} for each in expressions]


def _opaque(driver: Any = "d.example.com", parameters: Any = None) -> Document:
    return {"opaque": {"driver": driver, "parameters": {"a": 1} if parameters is None else parameters}}


def _exactly(**fields: Any) -> Document:
    return {"name": "a", "exactly": {"deviceClassName": "c", **fields}}


def _first(*several: Document, **fields: Any) -> Document:
    return {
        "name": "f",
        "firstAvailable": [{"name": "s", "deviceClassName": "c", **each} for each in several],
        **fields,
    }


def _claim(*requests: Document, **devices: Any) -> Document:
    return {"devices": {"requests": list(requests or (_exactly(),)), **devices}}


def _slice(**spec: Any) -> Document:
    return {"driver": "d.example.com", "pool": {"name": "p", "resourceSliceCount": 1}, "nodeName": "n", **spec}


def _device(**fields: Any) -> Document:
    return _slice(devices=[{"name": "a", **fields}])


def _without(spec: Document, *names: str) -> Document:
    return {name: value for name, value in spec.items() if name not in names}


def _capacity(value: str = "10", multiple: Any = True, **policy: Any) -> Document:
    return _device(allowMultipleAllocations=multiple, capacity={"a": {"value": value, "requestPolicy": policy}})


def _counters(*names: str) -> Document:
    return {name: {"value": "1"} for name in names}


def _result(**fields: Any) -> Document:
    return {"request": "a", "driver": "d.example.com", "pool": "p", "device": "x", **fields}


def _allocated(*results: Document, status: Document | None = None, **fields: Any) -> Document:
    return {"allocation": {"devices": {"results": list(results or (_result(),))}, **fields}, **(status or {})}


def _status(**device: Any) -> Document:
    return _allocated(status={"devices": [{"driver": "d.example.com", "pool": "p", "device": "x", **device}]})


def _selector(*requirements: Document, terms: int = 1) -> Document:
    return {"nodeSelectorTerms": [{"matchExpressions": list(requirements)}] * terms}


_IN = {"key": "k", "operator": "In", "values": ["v"]}
_TIME = "2026-01-02T03:04:05Z"
_CONDITION = {"type": "Ready", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": _TIME}

_SELECTORS: dict[str, list[Document]] = {
    "of the driver": _cel('device.driver == "d"'),
    "of an attribute": _cel('device.attributes["d"].a'),
    "of an attribute of text": _cel('device.attributes["d"].model == "x"'),
    "of a capacity": _cel('device.capacity["d"].memory.compareTo(quantity("1Gi")) >= 0'),
    "of many": _cel("device.allowMultipleAllocations"),
    "bound": _cel('cel.bind(d, device.attributes["d"], d.a && d.b)'),
    "of a version": _cel('device.attributes["d"].v.isGreaterThan(semver("1.0.0"))'),
    "of what has it": _cel('has(device.attributes["d"].a)'),
    "of any domain": _cel('"d" in device.attributes'),
    "of all": _cel('device.attributes.all(k, k.startsWith("a"))'),
    "of text": _cel('"a"'),
    "of a number": _cel("1"),
    "of an unsigned number": _cel("1u"),
    "of a list": _cel('["a"]'),
    "of a map": _cel('{"a": 1}'),
    "of a quantity": _cel('quantity("1")'),
    "of the device": _cel("device"),
    "of the attributes": _cel("device.attributes"),
    "of the attributes of a domain": _cel('device.attributes["d"]'),
    "of a quantity of it": _cel('device.capacity["d"].a'),
    "of null": _cel("null"),
    "of a type": _cel("type(1)"),
    "of a time": _cel('timestamp("2020-01-01T00:00:00Z")'),
    "of a duration": _cel('duration("1s")'),
    "of an optional": _cel('device.attributes[?"d"]'),
    "of dyn": _cel("dyn(1)"),
    "of nothing": _cel(""),
    "of an unknown field": _cel("device.x"),
    "of an unknown name": _cel("x"),
    "of half": _cel("device.driver =="),
    "of two mistakes": _cel("x && y"),
    "of two expressions": _cel('"a"', "true", "x"),
    "of an unknown function": _cel("device.driver.x()"),
    "of another type": _cel("device.driver == 1"),
    "that includes": _cel('device.attributes["d"].a.includes("x")'),
    "of a bad pattern": _cel('device.driver.matches("[")'),
    "of a bad quantity": _cel('device.capacity["d"].a.compareTo(quantity("x")) > 0'),
    "too dear": _cel("device.attributes.all(k, device.attributes.all(l, device.attributes.all(m, device.attributes.all(n, k == l))))"),
    "too dear in another way": _cel("[1, 2, 3].all(x, " * 12 + "true" + ")" * 12),
    "dear in text": _cel('device.attributes.all(k, device.attributes[k].all(l, device.attributes[k][l].matches("a*b*c*")))'),
    "of a part of an attribute": _cel('device.attributes["d"].a.b'),
    "of an index of an attribute": _cel('device.attributes["d"].a[0]'),
    "of an attribute by index": _cel('device.attributes["d"]["a"]'),
    "of an attribute or not": _cel('device.allowMultipleAllocations ? device.attributes["d"].a : false'),
    "of an attribute or dyn": _cel('device.allowMultipleAllocations ? device.attributes["d"].a : dyn(1)'),
    "of an attribute or a number": _cel('device.allowMultipleAllocations ? device.attributes["d"].a : 1'),
    "of an attribute that may be absent": _cel('device.attributes["d"].?a.orValue(false)'),
    "of a domain that may be absent": _cel('device.attributes[?"d"].orValue({}).?a.orValue("") == "x"'),
    "of a list of attributes": _cel('[device.attributes["d"].a]'),
    "of the first of attributes": _cel('[device.attributes["d"].a][0]'),
    "of a sum of attributes": _cel('device.attributes["d"].a + device.attributes["d"].b == 3'),
    "of a sum of attributes alone": _cel('device.attributes["d"].a + device.attributes["d"].b'),
    "of an attribute in a list": _cel('device.attributes["d"].model in ["a", "b"]'),
    "of an attribute as a list": _cel('"a" in device.attributes["d"].models'),
    "of a loop over an attribute": _cel('device.attributes["d"].a.all(x, x == 1)'),
    "of a size of an attribute": _cel('size(device.attributes["d"].a) < 3'),
    "of a part of a text": _cel('device.attributes["d"].model.startsWith("a")', 'device.attributes["d"].model.lowerAscii().contains("a")'),
    "of text of an attribute": _cel('string(device.attributes["d"].a).matches("a+")', 'device.driver.split(".").size() > 2'),
    "of quantities": _cel('device.capacity["d"].a.isGreaterThan(quantity("1Gi"))', 'device.capacity["d"]["a"].sub(quantity("1")).asInteger() > 1',
                          'device.capacity["d"].all(k, device.capacity["d"][k].isLessThan(quantity("1")))'),
    "of a comparison of quantities": _cel('device.capacity["d"].a == quantity("1")', 'device.capacity["d"].a > 1'),
    "of a driver of another type": _cel("device.driver + 1", "!device.driver", "device.allowMultipleAllocations == 1"),
    "of a version of a driver": _cel("semver(device.driver).major() > 1", 'isSemver(device.driver) && semver("1.2.3").isLessThan(device.attributes["d"].v)'),
    "of two loops": _cel("device.attributes.all(k, device.attributes.exists(l, l == k))"),
    "of three loops": _cel("device.attributes.all(k, device.attributes.exists(l, device.attributes.exists_one(m, l == m)))"),
    "of three loops in text": _cel('device.attributes.all(k, device.attributes.all(l, device.attributes.all(m, (k + l + m).matches("a*b"))))'),
    "of loops over lists": _cel("[1, 2, 3].map(x, x * 2).filter(x, x > 2).all(x, x in [4, 6])"),
    "of loops over keys": _cel("device.attributes.map(k, k).all(k, device.attributes.map(l, l).all(l, k.contains(l)))"),
    "of loops of two variables": _cel("device.attributes.all(k, v, v.exists(n, a, n == k))", "device.capacity.all(k, v, v.all(n, q, q.isInteger()))"),
    "of loops of all variables": _cel("device.attributes.all(k, v, v.all(n, a, device.attributes.all(l, w, w.all(m, b, a == b))))"),
    "bound twice": _cel('cel.bind(a, device.attributes["d"], cel.bind(b, device.capacity["d"], a.x && b.y.isInteger()))'),
    "bound to a loop": _cel("cel.bind(a, device.attributes, a.all(k, a.all(l, a.all(m, a.all(n, k == n)))))"),
    "bound to a list": _cel("cel.bind(a, [1, 2, 3], a.all(x, a.all(y, x != y)))", "cel.bind(a, device.driver, a.matches('x'))"),
    "bound badly": _cel("cel.bind(a.b, 1, true)", "cel.bind(1, 1, true)", "cel.bind(a, 1)", "cel.bind(a, b, true)", "cel.bind(a, 1, a)",
                        "bind(a, 1, true)", "cel.x", "cel.bind(a, 1, b.c, d)", "dev.bind(a, 1, true)", "a"),
    "bound in its own name": _cel("cel.bind(device, 1, device == 1)", "cel.bind(a, 1, cel.bind(a, 'x', a == 'x'))", "cel.bind(cel, 1, cel == 1)"),
    "of names of other rules": _cel("object == 1", "self.a", "oldObject", "request.name", "authorizer", "params.x", "Object{}"),
    "of lists of many texts": _cel(f"[{', '.join(['device.driver'] * 60)}].all(x, [{', '.join(['device.driver'] * 60)}].all(y, (x + y).matches('a.*b')))"),
    "of addresses and sets": _cel('ip("10.0.0.1").family() == 4', 'sets.contains([device.driver], ["a"])', 'url("https://a").getHost() == device.driver',
                                  "format.dns1123Label().validate(device.driver).hasValue()", 'device.driver.find("a") == ""', "math.greatest(1, 2) == 2"),
    "of sorted lists": _cel("[3, 1].sort() == [1, 3]", "[device.driver].sortBy(x, x)[0] == 'a'", "[1].isSorted()", "base64.encode(b'a') == ''"),
    "too long": _cel("true" + " " * 10240),
    "as long as may be": _cel("true" + " " * (10240 - 4)),
    "without cel": [{}],
    "too many": _cel(*["true"] * 33),
    "with markup": _cel('"<a>&"'),
}  # fmt: skip

_REQUESTS: dict[str, list[Document]] = {
    "none": [],
    "without a name": [{"exactly": {"deviceClassName": "c"}}],
    "with a bad name": [{**_exactly(), "name": "A.b"}],
    "with a long name": [{**_exactly(), "name": _LONG}],
    "of one name": [_exactly(), _exactly()],
    "of one name thrice": [_exactly(), _exactly(deviceClassName=""), _exactly()],
    "with a bad class": [_exactly(deviceClassName="A_b")],
    "with a long class": [_exactly(deviceClassName="a" * 254)],
    "with no count": [_exactly(count=0)],
    "with a negative count": [_exactly(count=-1)],
    "with a count of all": [_exactly(allocationMode="All", count=2)],
    "with another mode": [_exactly(allocationMode="Some", count=2)],
    "with tolerations": [_exactly(tolerations=[
        {"key": "a", "operator": "Exists"}, {"operator": "Exists"}, {"key": "a/b", "value": "c", "effect": "NoSchedule"},
        {"key": "a", "effect": "None", "tolerationSeconds": 5}])],
    "with bad tolerations": [_exactly(tolerations=[
        {"key": "a b", "operator": "Exists", "value": "x"}, {"operator": "In", "value": "a b", "effect": "X"},
        {"key": "a", "value": "a b"}, {"key": "A/" + _LONG, "operator": "Exists", "value": "a b"}])],
    "with too many tolerations": [_exactly(tolerations=[{"key": f"k{n}"} for n in range(17)])],
    "with capacities": [_exactly(capacity={"requests": {"memory": "1Gi", "d.example.com/cores": "2"}})],
    "with odd capacities": [_exactly(capacity={"requests": {"a b": "-1"}})],
    "of the first": [_first({}, {"name": "t", "allocationMode": "All"}, {"name": "u", "count": 3})],
    "of the first of one name": [_first({}, {})],
    "of the first with mistakes": [_first(
        {"name": ""}, {"name": "A", "deviceClassName": ""}, {"name": "b.c", "deviceClassName": "D_"},
        {"name": "d", "count": -1, "allocationMode": "X"}, {"name": "e", "allocationMode": "All", "count": 1},
        {"name": "g", "selectors": _cel("1"), "tolerations": [{"operator": "X"}]}, {"name": "A"})],
    "of too many firsts": [_first(*({"name": f"n{n}"} for n in range(9)))],
    "of eight firsts": [_first(*({"name": f"n{n}"} for n in range(8)))],
    "of an empty first": [{"name": "a", "firstAvailable": []}],
    "of neither": [{"name": "A.b"}],
    "of both with mistakes": [{"name": "a", "exactly": {"count": -1}, "firstAvailable": [{"name": "A"}]}],
    "too many": [{**_exactly(), "name": f"r{n}"} for n in range(33)],
    "thirty two": [{**_exactly(), "name": f"r{n}"} for n in range(32)],
    "with many mistakes": [
        {"name": "", "exactly": {"selectors": [{}, *_cel("1")], "count": -1, "tolerations": [{"value": "a b"}]}}, {"name": "x"},
        _first({"name": "x y"}), {"name": ""}],
    "that others use": [_exactly(adminAccess=True, deviceClassName="")],
}  # fmt: skip

_CONSTRAINTS: dict[str, list[Document]] = {
    "that match": [{"matchAttribute": "d.example.com/a"}],
    "that match some": [{"requests": ["a", "f", "f/s"], "matchAttribute": "d.example.com/a"}],
    "that differ": [{"distinctAttribute": "d.example.com/a"}],
    "of both": [{"matchAttribute": "d.example.com/a", "distinctAttribute": "b"}],
    "of neither": [{}],
    "of bad attributes": [{"matchAttribute": name} for name in (
        "", "a", "/a", "d/", "/", "d/a b", "D_/a", "a/b/c", f"d/{'a' * 33}", f"{_LONG}/a", f"{'d.' * 40}e/a")],
    "of bad distinct attributes": [{"distinctAttribute": name} for name in ("", "a", "/a", "d/", "d/1", "D.E/a", "a/b/c")],
    "of unknown requests": [{"requests": ["b", "a/b", "f/t", "f/s/x", "A b", "a/A", "", "/", "f/"], "matchAttribute": "d/a"}],
    "of a request twice": [{"requests": ["a", "a", "x", "x"], "matchAttribute": "d/a"}],
    "of too many requests": [{"requests": ["a"] * 33, "matchAttribute": "a"}],
    "too many": [{"matchAttribute": "d/a"}] * 33,
    "of mistakes": [{"requests": ["x"]}, {"requests": ["a", "a"], "matchAttribute": "x"}, {}],
}  # fmt: skip

_CONFIGS: dict[str, list[Document]] = {
    "good": [{"requests": ["a", "f/s"], **_opaque()}],
    "of nothing": [{}],
    "of no driver": [{"opaque": {"parameters": {}}}],
    "of bad drivers": [_opaque("A.B"), _opaque("a b"), _opaque(_LONG), _opaque(f"{_LONG}_")],
    "of no parameters": [{"opaque": {"driver": "d"}}],
    "of null parameters": [{"opaque": {"driver": "d", "parameters": None}}],
    "of other parameters": [_opaque(parameters=value) for value in ("a", 1, True, [], ["a"], {})],
    "of large parameters": [_opaque(parameters={"a": "x" * 10240})],
    "of as large parameters as may be": [_opaque(parameters={"a": "x" * (10240 - 9)})],
    "of unknown requests": [{"requests": ["b", "a", "a", "f/s/t"], **_opaque()}],
    "too many": [_opaque()] * 33,
    "of mistakes": [{"requests": ["x", "x"], "opaque": {}}, {}],
}

_CLASS_SPECS: dict[str, Document] = {
    **{f"selectors {name}": {"selectors": _SELECTORS[name]} for name in ("of text", "without cel", "too many", "of two mistakes")},
    **{f"configs {name}": {"config": [_without(each, "requests") for each in configs]} for name, configs in _CONFIGS.items()},
    **{f"extended as {name}": {"extendedResourceName": name} for name in (
        "example.com/gpu", "gpu", "kubernetes.io/gpu", "requests.example.com/gpu", "a b/c", "", "example.com/", f"example.com/{_LONG}", "cpu")},
    "many mistakes": {"selectors": [{}, *_cel("1")], "config": [{}], "extendedResourceName": "x"},
}  # fmt: skip

_SLICE_SPECS: dict[str, Document] = {
    "small": _slice(),
    "of nothing": {},
    "of no driver": _without(_slice(), "driver"),
    "of an uppercase driver": _slice(driver="D.Example.com"),
    "of a bad driver": _slice(driver="d_e"),
    "of a long driver": _slice(driver=_LONG),
    "of no pool": _without(_slice(), "pool"),
    **{f"of pool {number}": _slice(pool=pool) for number, pool in enumerate((
        {"name": "a/b.c/d", "generation": 5, "resourceSliceCount": 2}, {"name": "A//b", "resourceSliceCount": 1},
        {"name": "a" * 254, "resourceSliceCount": 1}, {"name": "p", "generation": -1, "resourceSliceCount": 0},
        {"name": "/", "generation": -1, "resourceSliceCount": -5}))},
    "of no node": _without(_slice(), "nodeName"),
    "of an empty node": _slice(nodeName=""),
    "of a bad node": _slice(nodeName="A b"),
    "of all nodes": {**_without(_slice(), "nodeName"), "allNodes": True},
    "of not all nodes": {**_without(_slice(), "nodeName"), "allNodes": False},
    "of some nodes": {**_without(_slice(), "nodeName"), "nodeSelector": _selector(_IN)},
    "of no nodes": {**_without(_slice(), "nodeName"), "nodeSelector": {"nodeSelectorTerms": []}},
    "of two selections": {**_without(_slice(), "nodeName"), "nodeSelector": _selector(_IN, terms=2)},
    "of bad nodes": {**_without(_slice(), "nodeName"), "nodeSelector": _selector({"key": "a b", "operator": "X"})},
    "of bad fields of nodes": {**_without(_slice(), "nodeName"), "nodeSelector": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "x", "operator": "In", "values": ["A b", "c"]}]}]}},
    "of an empty selection": {**_without(_slice(), "nodeName"), "nodeSelector": _selector()},
    "of selected nodes without values": {**_without(_slice(), "nodeName"), "nodeSelector": _selector({"key": "a", "operator": "Gt", "values": ["x", "y"]})},
    "of several nodes": _slice(allNodes=True, nodeSelector=_selector(_IN), perDeviceNodeSelection=True),
    "of nodes of devices": {**_without(_device(allNodes=True), "nodeName"), "perDeviceNodeSelection": True},
    "of no nodes of devices": _slice(perDeviceNodeSelection=False),
    "of bad nodes of devices": {**_without(_slice(), "nodeName"), "perDeviceNodeSelection": True, "devices": [
        {"name": "a"}, {"name": "b", "nodeName": ""}, {"name": "c", "nodeName": "A b"}, {"name": "d", "allNodes": False},
        {"name": "e", "nodeName": "n", "allNodes": True, "nodeSelector": _selector()},
        {"name": "f", "nodeSelector": {"nodeSelectorTerms": []}}]},
    "of nodes of devices too many": _device(nodeName="n"),
    "of counters and devices": _device() | {"sharedCounters": [{"name": "s", "counters": _counters("a")}]},
    "of counters": _slice(sharedCounters=[{"name": "s", "counters": _counters("a", "b")}]),
    "of counters and no devices": _slice(devices=[], sharedCounters=[{"name": "s", "counters": _counters("a")}]),
    "of bad counters": _slice(sharedCounters=[
        {}, {"name": "A", "counters": {}}, {"name": "s", "counters": {"A b": {"value": "-1"}}}, {"name": "s", "counters": _counters(_LONG)}]),
    "of too many counters": _slice(sharedCounters=[{"name": f"s{n}", "counters": _counters("a")} for n in range(9)]),
    "of too large counters": _slice(sharedCounters=[{"name": "s", "counters": _counters(*(f"c{n}" for n in range(33)))}]),
    "of a device without a name": _slice(devices=[{}]),
    "of a device with a bad name": _slice(devices=[{"name": "A b"}, {"name": _LONG}, {"name": "a.b"}]),
    "of a device twice": _slice(devices=[{"name": "a"}, {"name": "a"}, {"name": "b"}, {"name": "a"}]),
    "of 128 devices": _slice(devices=[{"name": f"d{n}"} for n in range(128)]),
    "of 129 devices": _slice(devices=[{"name": f"d{n}"} for n in range(129)]),
    "of 65 devices with taints": _slice(devices=[{"name": f"d{n}", "taints": [{"key": "k", "effect": "None"}]} for n in range(65)]),
    "of 65 devices that consume": _slice(devices=[
        {"name": f"d{n}", "consumesCounters": [{"counterSet": "s", "counters": _counters("a")}]} for n in range(65)]),
    "of 65 devices with lists": _slice(devices=[{"name": f"d{n}", "attributes": {"a": {"ints": [1], "int": 1}}} for n in range(65)]),
    "of attributes": _device(attributes={"a": {"int": 1}, "d/b": {"bool": False}, "c": {"string": ""}, "e": {"version": "1.2.3-a.1+b"}}),
    **{f"of attribute {name}": _device(attributes={name: {"int": 1}}) for name in (
        "", "a b", "1", "/a", "d/", "/", "A.B/c", "a_/b", "a/b/c", "a" * 33, f"{_LONG}/a", f"{'d' * 80}/{'a' * 40}", "\u00fc")},
    "of attributes of a long bad key": _device(attributes={"b" * 120: {}}),
    "of a capacity of a long bad key": _device(capacity={f"{'b' * 60}/{'c' * 60}": {"value": "1", "requestPolicy": {}}}),
    "of counters of a bad value": _slice(sharedCounters=[{"name": "s", "counters": {"a": {"value": "x"}}}]),
    "of a capacity without a value": _device(capacity={"a": {}}),
    "of capacities written oddly": _device(capacity={"a": {"value": "1024Mi"}, "b": {"value": "0.5e3"}, "c": {"value": 1000}}),
    "of attributes with bad keys": _device(attributes={"a b": {"string": "x" * 65}}),
    "of attribute of nothing": _device(attributes={"a": {}}),
    "of attribute of two": _device(attributes={"a": {"int": 1, "string": "x"}}),
    "of attribute of all": _device(attributes={"a": {"int": 1, "bool": True, "string": "x" * 65, "version": "1"}}),
    "of attribute of long text": _device(attributes={"a": {"string": "x" * 65}}),
    "of attribute of a long version": _device(attributes={"a": {"version": "1.0." + "1" * 65}}),
    "of attribute of a good long version": _device(attributes={"a": {"version": "1.0.0-" + "a" * 65}}),
    **{f"of version {version}": _device(attributes={"a": {"version": version}}) for version in ("", "1.2", "01.2.3", "1.2.3-01", "v1.2.3", "1.2.3\n")},
    "of attribute of lists": _device(attributes={"a": {"ints": [1]}}),
    "of attribute of a list and a number": _device(attributes={"a": {"strings": ["x"], "int": 1}}),
    "of 33 attributes": _device(attributes={f"a{n}": {"int": n} for n in range(33)}),
    "of 16 attributes and 17 capacities": _device(
        attributes={f"a{n}": {"int": n} for n in range(16)}, capacity={f"a{n}": {"value": "1"} for n in range(17)}),
    "of 49 attributes": _device(attributes={f"a{n}": {"int": n} for n in range(49)}),
    "of capacities": _device(capacity={"a": {"value": "1Gi"}, "d/b": {"value": "0.5"}}),
    "of a bad capacity": _device(capacity={"a b": {"value": "-1"}}),
    "of a policy for one": _capacity(multiple=None, default="1", validValues=["1"]),
    "of a policy for not many": _capacity(multiple=False, default="1"),
    "of a policy of nothing": _capacity(),
    "of a policy of a default": _capacity(default="100"),
    "of valid values": _capacity(default="2", validValues=["1", "2", "10"]),
    "of valid values without default": _capacity(validValues=["1"]),
    "of valid values of another default": _capacity(default="3", validValues=["1", "2"]),
    "of unsorted values": _capacity(default="2", validValues=["3", "2", "1", "11"]),
    "of equal values": _capacity(default="1", validValues=["1", "1", "1000m"]),
    "of eleven values": _capacity(default="1", validValues=[str(n) for n in range(1, 12)]),
    "of both policies": _capacity(default="1", validValues=["1"], validRange={"min": "1"}),
    "of a range": _capacity(default="2", validRange={"min": "2", "max": "10", "step": "2"}),
    "of a range without default": _capacity(validRange={"min": "1"}),
    "of a range without min": _capacity(default="1", validRange={"max": "2"}),
    "of a range of mistakes": _capacity(default="1", validRange={"min": "20", "max": "15", "step": "4"}),
    "of a range of a large default": _capacity(default="9", validRange={"min": "1", "max": "4", "step": "20"}),
    "of a range of odd steps": _capacity("1Gi", default="700Mi", validRange={"min": "100Mi", "max": "650Mi", "step": "200Mi"}),
    "of taints": _device(taints=[{"key": "a/b", "value": "c", "effect": "NoExecute", "timeAdded": _TIME}, {"key": "a", "effect": "None"}]),
    "of bad taints": _device(taints=[{}, {"key": "a b", "value": "c d", "effect": "X", "timeAdded": _TIME}]),
    "of a taint of now": _device(taints=[{"key": "a", "effect": "NoSchedule"}]),
    "of 17 taints": _device(taints=[{"key": f"k{n}", "effect": "None"} for n in range(17)]),
    "of consumed counters": _device(consumesCounters=[{"counterSet": "s", "counters": _counters("a")}]),
    "of bad consumed counters": _device(consumesCounters=[{}, {"counterSet": "A b", "counters": {"C d": {"value": "1"}}}]),
    "of counters consumed twice": _device(consumesCounters=[{"counterSet": "s", "counters": _counters("a")}] * 2),
    "of too many consumed counters": _device(consumesCounters=[{"counterSet": f"s{n}", "counters": _counters("a")} for n in range(3)]),
    "of too large consumed counters": _device(consumesCounters=[{"counterSet": "s", "counters": _counters(*(f"c{n}" for n in range(33)))}]),
    "of binding": _device(bindsToNode=True, bindingConditions=["a"], bindingFailureConditions=["b"]),
    "of half a binding": _device(bindingConditions=["a"]),
    "of the other half of a binding": _device(bindingFailureConditions=["a"]),
    "of bad bindings": _device(bindingConditions=["a b", "c", "c"], bindingFailureConditions=["", "c", "d", "d"]),
    "of too many bindings": _device(bindingConditions=[f"a{n}" for n in range(5)], bindingFailureConditions=[f"b{n}" for n in range(5)]),
    "of mappings": _device(nodeAllocatableResourceMappings={"cpu": {"allocationMultiplier": "2"}, "x": {}}),
    "of many mistakes": {
        "driver": "A b", "pool": {"generation": -1}, "nodeName": "A b", "allNodes": False, "sharedCounters": [{}], "devices": [
            {"name": "A", "attributes": {"a b": {}}, "capacity": {"1": {"value": "1", "requestPolicy": {}}}, "taints": [{}],
             "consumesCounters": [{}], "nodeName": "n", "bindingConditions": ["x y"]}, {"name": "A"}]},
}  # fmt: skip

_SLICE_CHANGES: dict[str, Document] = {
    "that grows": {"pool": {"generation": 2, "resourceSliceCount": 3}, "devices": [{"name": "b"}]},
    "of another pool": {"pool": {"name": "q"}},
    "of another driver": {"driver": "e"},
    "of another node": {"nodeName": "m"},
    "of all nodes now": {"nodeName": None, "allNodes": True},
    "of another and bad everything": {"driver": "A b", "pool": {"name": "//", "generation": -1}, "nodeName": "A b", "devices": [{"name": "A"}]},
    "with a bad taint more": {"devices": [{"name": "a", "taints": [{"key": "k", "effect": "None"}, {"key": "l"}]}]},
    "with mappings": {"devices": [{"name": "a", "nodeAllocatableResourceMappings": {"cpu": {}}}]},
    "with uppercase": {"devices": [], "driver": "D.Example.com"},
}  # fmt: skip

_CLASS_CHANGES: dict[str, Document] = {
    "of text": {"selectors": _cel('"a"')},
    "of another name": {"extendedResourceName": "x"},
    "of no config": {"config": [{}]},
    "of a larger config": {"config": [_opaque(parameters={"a": "x" * 10240})]},
    "of nothing": {"selectors": None, "config": None},
}

_STATUSES: dict[str, Document] = {
    "empty": {},
    "allocated": _allocated(),
    "allocated and used": _allocated(status={"reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}]}),
    "used and not allocated": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}]},
    "used by bad things": _allocated(status={"reservedFor": [{}, {"resource": "pods"}, {"name": "a", "uid": "1"}]}),
    "used by one twice": _allocated(status={"reservedFor": [{"resource": "pods", "name": name, "uid": "1"} for name in "ab"]}),
    "used by too many": _allocated(status={"reservedFor": [{"resource": "pods", "name": "p", "uid": str(n)} for n in range(257)]}),
    "allocated on nodes": _allocated(nodeSelector=_selector(_IN), allocationTimestamp=_TIME),
    "allocated on bad nodes": _allocated(nodeSelector=_selector({"key": "a b", "operator": "X"})),
    "allocated on no nodes": _allocated(nodeSelector={"nodeSelectorTerms": []}),
    "allocated wrongly": _allocated({}, _result(request="b", driver="A b", pool="A//b", device="A.b", shareID="x")),
    "allocated to a subrequest": _allocated(_result(request="f/s"), _result(request="f/t"), _result(request="f"), _result(request="f/s/t")),
    "allocated to share": _allocated(_result(shareID=_UID, consumedCapacity={"a": "1"}), _result(shareID=_UID.upper().replace("0", "A"))),
    **{f"allocated to share {share or 'nothing'}": _allocated(_result(shareID=share)) for share in (
        "", _UID.replace("-", ""), f"{{{_UID}}}", f"urn:uuid:{_UID}", "zzzzzzzz-0000-4000-8000-000000000001", _UID.replace("-", "_"), f"uRn:xxid:{_UID}")},
    "allocated with tolerations": _allocated(_result(tolerations=[{"key": "a"}, {"operator": "X"}])),
    "allocated with bindings": _allocated(_result(bindingConditions=["a b"], bindingFailureConditions=["c", "c"]), _result(bindingConditions=["a"])),
    "allocated for others": _allocated(_result(), _result(adminAccess=True)),
    "allocated too much": _allocated(*[_result()] * 33),
    "configured": _allocated() | {"allocation": {"devices": {"results": [_result()], "config": [
        {"source": "FromClaim", "requests": ["a"], **_opaque()}, {"source": "FromClass", **_opaque()}]}}},
    "configured wrongly": {"allocation": {"devices": {"config": [
        {}, {"source": "X", "requests": ["a", "a", "b", "b"], **_opaque("A b", 1)}, {"source": "FromClass"}]}}},
    "configured too much": {"allocation": {"devices": {"config": [{"source": "FromClass", **_opaque()}] * 65}}},
    "of a device": _status(conditions=[_CONDITION], data={"a": 1}, networkData={
        "interfaceName": "e", "hardwareAddress": "h", "ips": ["10.0.0.1/8", "fd00::1/64"]}),
    "of a device not allocated": {"devices": [{"driver": "d", "pool": "p", "device": "x"}]},
    "of another device": _allocated(status={"devices": [{"driver": "d.example.com", "pool": "p", "device": "y"}]}),
    "of a device of nothing": _allocated(status={"devices": [{}]}),
    "of a bad device": _allocated(status={"devices": [{"driver": "A b", "pool": "/", "device": "A.b", "shareID": "x"}]}),
    "of a shared device": _allocated(_result(shareID=_UID), status={"devices": [
        {"driver": "d.example.com", "pool": "p", "device": "x", "shareID": _UID}, {"driver": "d.example.com", "pool": "p", "device": "x"}]}),
    "of a device twice": _allocated(status={"devices": [{"driver": "d.example.com", "pool": "p", "device": "x"}] * 2}),
    "of bad conditions": _status(conditions=[{}, {**_CONDITION, "status": "X"}, _CONDITION, {**_CONDITION, "type": "a b", "reason": "1"}]),
    "of many conditions": _status(conditions=[{**_CONDITION, "type": f"C{n}"} for n in range(9)]),
    **{f"of data {number}": _status(data=data) for number, data in enumerate(("x", 1, [], {}, None, False, {"a": "x" * 10240}))},
    "of bad networks": _status(networkData={"interfaceName": "e" * 257, "hardwareAddress": "h" * 129, "ips": [
        "10.0.0.1", "10.0.0.1/8", "10.0.0.1/8", "010.0.0.1/8", "fd00::0/64", "x", "::ffff:1.2.3.4/100", "FD00::1/64", ""]}),
    "of as much network as may be": _status(networkData={"interfaceName": "\u00fc" * 128, "hardwareAddress": "h" * 128}),
    "of too much network": _status(networkData={"interfaceName": "\u00fc" * 129, "ips": [f"10.0.0.{n}/8" for n in range(17)]}),
    "of many mistakes": _allocated(_result(request="x"), status={"reservedFor": [{}], "devices": [{}]}),
}  # fmt: skip


def _x(spec: Document) -> Document:
    return {"metadata": {"name": "x"}, "spec": spec}


def _each(title: str, path: str, specs: dict[str, Document]) -> list[Case]:
    return [Case(f"devices: {title} {name}", path, _x(spec)) for name, spec in specs.items()]


_TWO = [_exactly(), _first({})]
_OLD_SLICE = _x(_device())
_OLD_CLASS = _x({"selectors": _cel("true"), "config": [_opaque()]})
DEVICE_CASES = [
    *_each("claim with a selector", _CLAIMS, {name: _claim(_exactly(selectors=found)) for name, found in _SELECTORS.items()}),
    *_each("claim with requests", _CLAIMS, {name: {"devices": {"requests": found}} for name, found in _REQUESTS.items()}),
    *_each("claim with constraints", _CLAIMS, {name: _claim(*_TWO, constraints=found) for name, found in _CONSTRAINTS.items()}),
    *_each("claim with configs", _CLAIMS, {name: _claim(*_TWO, config=found) for name, found in _CONFIGS.items()}),
    *_each("claim", _CLAIMS, {"of no spec": {}, "of mistakes everywhere": _claim(
        {"name": "A", "exactly": {}}, {"name": "A"}, constraints=[{}], config=[{"requests": ["A", "b"]}])}),
    *_each("template", _TEMPLATES, {
        "good": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": _claim()},
        "of nothing": {},
        "with odd metadata": {"metadata": {"labels": {"a b": "c d"}, "annotations": {"e f": "x"}}, "spec": _claim(_exactly(), _exactly())},
        "with mistakes": {"spec": _claim(_exactly(selectors=_cel("1")), {"name": "x"}, constraints=[{}], config=[{}])},
        "that others use": {"spec": _claim(_exactly(adminAccess=True, deviceClassName=""))},
        "too many requests": {"spec": _claim(*_REQUESTS["too many"])},
    }),
    *_each("class", _CLASSES, _CLASS_SPECS),
    *_each("slice", _SLICES, _SLICE_SPECS),
    *(Case(f"devices: slice {name}", _SLICES, _OLD_SLICE, {"spec": spec}) for name, spec in _SLICE_CHANGES.items()),
    *(Case(f"devices: class changed to {name}", _CLASSES, _OLD_CLASS, {"spec": spec}) for name, spec in _CLASS_CHANGES.items()),
    *(Case(f"devices: claim {name}", _CLAIMS, _x(_claim(*_TWO)), {"spec": spec}) for name, spec in {
        "with empty lists": _claim(_exactly(selectors=[], tolerations=[]), {"name": "b", "firstAvailable": []}, constraints=[{"requests": []}], config=[
            {"requests": [], "opaque": {"driver": "d", "parameters": None}}]), "changed": _claim(_exactly(count=2)), "changed and bad": _claim({}), "emptied": {"devices": {"requests": []}}, "without devices": {"devices": None},
        "with everything": _claim(_exactly(
            count=2, adminAccess=False, selectors=_cel("true"), tolerations=[{"key": "a"}], capacity={"requests": {"b": "1", "a": "1Gi"}}),
            constraints=[{"requests": ["a"], "distinctAttribute": "d/a"}], config=[_opaque(parameters={"b": {"a": [1, "<"]}})])}.items()),
    *(Case(f"devices: template {name}", _TEMPLATES, _x({"spec": _claim(*_TWO)}), {"spec": spec}) for name, spec in {
        "changed and bad": {"spec": _claim(_exactly(count=-1, selectors=_cel("1")), {"name": "x"}, constraints=[{}])},
        "changed": {"spec": _claim(_exactly(count=2))}, "emptied": {"spec": {"devices": {"requests": []}}},
        "without a spec": {"spec": None}, "relabelled": {"metadata": {"labels": {"a": "b"}}},
        "unconstrained": {"spec": {"devices": {"requests": None, "constraints": [], "config": []}}}}.items()),
    *(Case(f"devices: claim status {name}", _CLAIMS, _x(_claim(*_TWO)), {"status": status}, "status")
      for name, status in _STATUSES.items()),
]  # fmt: skip
