"""Leader for life, with the name it has in operator-lib: `await leader.become(config, "my-operator-lock")`."""

from ctrlruntime.leaderelection.for_life import LockClient, become

__all__ = ["LockClient", "become"]
