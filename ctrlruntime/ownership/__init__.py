"""Ownership of work: the members of an operator divide slots among themselves, and each slot has at most one owner."""
