"""Hostile clients beside an honest one: what the servers of an operator hold out. `scripts/attack`."""
