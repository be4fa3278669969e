"""The store: one revision counter, bytes per object, history for watches and snapshots."""

from ctrlruntime.apiserver.storage.store import Key, Record, Store
from ctrlruntime.apiserver.storage.table import Event, Subscription, Table

__all__ = ["Event", "Key", "Record", "Store", "Subscription", "Table"]
