"""Objects read from manifests."""

from __future__ import annotations

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.testing import read_objects

OBJECT = "{apiVersion: v1, kind: Secret, metadata: {name: a}}\n"


def test_read_objects_returns_each_document_and_each_item_of_a_list(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text(f"{OBJECT}---\n---\n{{apiVersion: v1, kind: List, items: [{OBJECT.strip()}]}}\n")

    assert [(each.kind, each.metadata.name) for each in read_objects(file)] == [("Secret", "a"), ("Secret", "a")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", r"a\.yaml, line "),
        ("a: 1", "without apiVersion and kind"),
        ("- 1", "without apiVersion"),
        (None, "cannot read"),
    ],
)
def test_read_objects_names_what_is_wrong(tmp_path, text, message):
    file = tmp_path / "a.yaml"
    if text is not None:
        file.write_text(text)

    with pytest.raises(ConfigError, match=message):
        read_objects(file)
