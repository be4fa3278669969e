"""Runs after the blocks of docs/how-to/audit.md, in their namespace."""

assert any(line.startswith("unused:  create deployments.apps") for line in lines), lines
