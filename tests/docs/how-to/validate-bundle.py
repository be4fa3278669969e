"""Runs after the blocks of docs/how-to/validate-bundle.md, in their namespace."""

import tempfile

with tempfile.TemporaryDirectory() as folder:
    assert codes(folder), "an empty folder is no bundle"
