"""HTTP: paths, negotiation, options, and the handlers that turn requests into registry calls."""
