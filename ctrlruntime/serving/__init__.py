"""HTTP endpoints of an operator: metrics, probes and debug pages. Import from its modules: the manager needs only `loops` at import time."""
