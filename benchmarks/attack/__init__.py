"""What an operator holds out: hostile callers of its servers (`callers`), hostile answers to its client (`servers`). `scripts/attack`."""
