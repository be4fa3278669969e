"""Leader for life, under the name operator-lib gives it: `await leader.become(config, "my-operator-lock")`."""

from ctrlruntime.leaderelection.for_life import LockClient, become

__all__ = ["LockClient", "become"]
