"""The text of manifests is YAML that reads back as what was written, whatever it holds."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate import dump, dump_all

TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="ab :#-'\"\n\t?{}[]&*!|>%@`,\\0123.eExX_+~", max_size=120),
    st.sampled_from(["yes", "null", "1e3", "0x1F", "2020-01-02", "12:30", "---", "...", "", " ", "\n", "a" * 200]),
)
# `=` and `<<` are written plain, as controller-gen does, and PyYAML has meanings of its own for them.
WORDS = TEXTS.filter(lambda text: text not in {"=", "<<"})
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), WORDS)
KEYS = WORDS.filter(lambda text: 0 < len(text) < 60)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, TREES, max_size=4))
def test_what_is_written_reads_back(document):
    assert yaml.safe_load(dump(document) if document else "{}") == document


@given(
    st.lists(st.sampled_from(["word", "a", "is:", "it's", "#", '"q"', "longerwordthanothers", "-", "1"]), max_size=60)
)
def test_long_texts_fold_and_read_back(words):
    document = {"description": " ".join(words)}

    assert yaml.safe_load(dump(document)) == document


def test_lines_break_after_eighty_columns():
    lines = dump({"description": "word " * 40 + "end"}).splitlines()

    assert len(lines) > 2
    assert all(len(line) <= 86 for line in lines)


def test_documents_begin_with_three_dashes():
    assert dump_all([{"a": 1}, {"b": 2}]) == "---\na: 1\n---\nb: 2\n"


def test_keys_sort_numbers_by_value():
    assert dump({"a10": 1, "a2": 2, "B": 3, "a": 4}) == "---\nB: 3\na: 4\na2: 2\na10: 1\n"


def test_what_is_no_unicode_is_an_error():
    with pytest.raises(ConfigError, match="half of a surrogate pair"):
        dump({"a": ["\udcf6"]})
