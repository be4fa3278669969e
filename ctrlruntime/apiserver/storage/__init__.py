"""The store: one revision counter, bytes per object, history for watches and snapshots."""

from ctrlruntime.apiserver.storage.store import Backing, Key, Record, Store
from ctrlruntime.apiserver.storage.table import Event, Subscription, Table

__all__ = ["Backing", "Event", "Key", "Record", "Store", "Subscription", "Table"]
