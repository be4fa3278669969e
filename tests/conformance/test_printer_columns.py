"""The paths of printer columns: both servers print the same cells, and leave the same columns out."""

from __future__ import annotations

from typing import Any

from ctrlruntime.testing import Environment

GROUP = "columns.example.com"
DEFINITION = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/cols.{GROUP}"
PATHS = (
    # names
    r".metadata.labels.app\.kubernetes\.io/name",
    r".metadata.labels['app\.kubernetes\.io/name']",
    ".metadata.labels['app.kubernetes.io/name']",
    r'.metadata.labels["app\.kubernetes\.io/name"]',
    ".metadata['labels'].plain",
    ".metadata.labels['plain']",
    r".metadata.annotations.example\.com/x",
    ".metadata.annotations['example.com/x']",
    ".metadata.annotations.sla/sh",
    ".spec.a-b",
    r".spec.a\b",
    r".spec.a\\b",
    ".spec.a b",
    ".spec .x",
    ".spec.x ",
    ".spec\t.x",
    ".spec.$dollar",
    ".spec.@at",
    ".spec.'quoted'",
    ".spec.0",
    ".spec.ü",
    ".spec.x+1",
    ".spec.{x}",
    ".spec.x,.spec.y",
    ".spec.nul",
    ".spec.obj",
    ".spec.values[0]",
    ".spec.values[1]",
    ".spec.values[2]",
    ".spec.values[3]",
    ".spec.values[4]",
    ".spec.values[5]",
    ".spec.values",
    ".spec.",
    ".",
    "..x",
    ".spec..name",
    ".spec....x",
    "..items[0]",
    # lists
    ".spec.items",
    ".spec.items[0]",
    ".spec.items[-1]",
    ".spec.items[9]",
    ".spec.items[*]",
    ".spec.items[]",
    ".spec.items[a]",
    ".spec.items[ 0 ]",
    ".spec.items[1:]",
    ".spec.items[0:-1]",
    ".spec.items[0:9]",
    ".spec.items[2:1]",
    ".spec.items[::2]",
    ".spec.items[::0]",
    ".spec.items[99999999999999999999]",
    ".spec.items[1,0]",
    ".spec['y','x']",
    ".spec.list.name",
    ".spec.list.*.x",
    ".spec.x[0]",
    ".spec[*]",
    ".spec[",
    # filters
    ".spec.list[?(@.name=='b')].x",
    '.spec.list[?(@.name=="b")].x',
    '.spec.list[?(@.name=="it\'s")].x',
    ".spec.list[?(@.name!='a')].x",
    ".spec.list[?(@.x>1)].name",
    ".spec.list[?(@.x>=2)].name",
    ".spec.list[?(2<=@.x)].name",
    ".spec.list[?('b'==@.name)].x",
    ".spec.list[?(@['name']=='b')].x",
    ".spec.list[?(@.m['k']=='v')].x",
    ".spec.list[?(@.m)].x",
    ".spec.list[?(@.x[0])].name",
    ".spec.list[?(@.x==1.0)].name",
    ".spec.list[?(@.x=='b')].name",
    ".spec.list[?(@.x=2)].name",
    ".spec.list[?(true)].x",
    ".spec.list[?(@.name=='b' && @.x==2)].x",
    ".spec.list[?(@.name=='b')",
    ".spec.list[(@.length-1)]",
)
OBJECT = {
    "metadata": {
        "name": "o",
        "labels": {"app.kubernetes.io/name": "label", "plain": "plain"},
        "annotations": {"example.com/x": "annotation", "sla/sh": "slash"},
    },
    "spec": {
        "items": ["i0", "i1", "i2"],
        "list": [{"name": "a", "x": 1}, {"name": "b", "x": 2, "m": {"k": "v"}}, {"name": "it's", "x": 3}],
        "obj": {"k": 1},
        "nul": None,
        "values": [0.5, 100000000.5, 1e21, True, {"b": "<&>", "a": "ü\u2028"}, None],
        **{
            name: f"<{name}>"
            for name in ("x", "y", "a-b", "ab", "a b", "$dollar", "@at", "'quoted'", "0", "ü", "x+1", "")
        },
    },
}


def printed(server: Environment) -> dict[str, Any]:
    """The columns and cells of each path; a version of its own has each, for one that cannot be read ends the columns."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [
        {
            "name": f"v{number}",
            "served": True,
            "storage": number == 1,
            "schema": schema,
            "additionalPrinterColumns": [{"name": "C", "type": "string", "jsonPath": path}],
        }
        for number, path in enumerate(PATHS, 1)
    ]
    names = {"plural": "cols", "singular": "col", "kind": "Col", "listKind": "ColList"}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    spec = {"group": GROUP, "scope": "Cluster", "names": names, "versions": versions}
    server.install_crds({**head, "metadata": {"name": f"cols.{GROUP}"}, "spec": spec}, timeout=30)
    connection = server.connection
    headers = connection.headers
    try:
        connection.request("POST", f"/apis/{GROUP}/v1/cols", {"apiVersion": f"{GROUP}/v1", "kind": "Col", **OBJECT})
        as_table = ("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
        connection.headers = [*(pair for pair in headers if pair[0] != "Accept"), as_table]
        found = {}
        for version in versions:
            table = connection.request("GET", f"/apis/{GROUP}/{version['name']}/cols/o")
            columns = [column["name"] for column in table["columnDefinitions"]]
            found[version["additionalPrinterColumns"][0]["jsonPath"]] = (columns, table["rows"][0]["cells"])
        return found
    finally:
        connection.headers = headers
        connection.request("DELETE", DEFINITION)


def test_both_servers_read_the_paths_of_columns_alike(embedded_server, real_server):
    expected = printed(real_server)

    assert printed(embedded_server) == expected
    assert expected[PATHS[0]] == (["Name", "C"], ["o", "label"])
