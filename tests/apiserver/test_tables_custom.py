from datetime import UTC, datetime

import pytest

from ctrlruntime.apiserver.tables import custom_cells, custom_columns, duration

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "<invalid>"),
        (-1.5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (70 * 60, "70m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 300, "3h5m"),
        (8 * 3600 + 300, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (50 * 3600, "2d2h"),
        (8 * 86400 + 3600, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (734 * 86400, "2y4d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_durations_are_kubectls(seconds, text):
    assert duration(seconds) == text


DOCUMENT = {
    "metadata": {"name": "m", "creationTimestamp": "2026-01-01T11:59:31Z", "labels": {"app.kubernetes.io/name": "x"}},
    "spec": {"size": 3, "ratio": 0.5, "on": True, "items": [{"n": "a", "v": 1}, {"n": "b", "v": 2}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Old", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("kind", "path", "cell"),
    [
        ("integer", ".spec.size", 3),
        ("integer", ".spec.on", None),
        ("integer", ".metadata.name", None),
        ("number", ".spec.ratio", 0.5),
        ("number", ".spec.size", 3),
        ("boolean", ".spec.on", True),
        ("boolean", ".spec.size", None),
        ("string", ".metadata.name", "m"),
        ("string", ".spec.size", "3"),
        ("string", ".spec.on", "true"),
        ("string", ".spec.items[*].n", "a"),
        ("string", ".spec.items[0]", '{"n":"a","v":1}'),
        ("date", ".metadata.creationTimestamp", "29s"),
        ("date", ".metadata.name", "<invalid>"),
        ("date", ".spec.size", None),
        ("string", ".spec.none", None),
        ("string", ".spec.items[7]", None),
    ],
)
def test_cell_has_the_declared_type_or_is_none(kind, path, cell):
    [_, value] = custom_cells([{"name": "X", "type": kind, "jsonPath": path}], DOCUMENT, NOW)

    assert value == cell
    assert type(value) is type(cell)


def test_declared_columns_follow_the_name():
    declared = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1, "description": "how many"},
        {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
    ]

    name, size, on = custom_columns(declared)

    assert (name["name"], name["format"]) == ("Name", "name")
    assert size == {"name": "Size", "type": "integer", "format": "", "description": "how many", "priority": 1}
    assert on["description"] == "Custom resource definition column (in JSONPath format): .spec.on"
    assert custom_cells(declared, DOCUMENT, NOW) == ["m", 3, True]


def test_columns_end_before_the_first_whose_path_cannot_be_read():
    declared = [{"name": path, "type": "string", "jsonPath": path} for path in (".spec.on", ".broken[", ".spec.size")]

    assert [column["name"] for column in custom_columns(declared)] == ["Name", ".spec.on"]
    assert custom_cells(declared, DOCUMENT, NOW) == ["m", "true"]


@pytest.mark.parametrize("declared", [None, []])
def test_without_declared_columns_there_is_the_age(declared):
    assert [column["name"] for column in custom_columns(declared)] == ["Name", "Age"]
    assert custom_columns(declared)[1]["type"] == "date"
    assert custom_cells(declared, DOCUMENT, NOW) == ["m", "29s"]
