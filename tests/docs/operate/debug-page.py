assert len(states) == 1
assert states[0].startswith("ConfigMap: watching, "), states
