"""What `kubectl get` prints: the columns of each kind, and the cells of each object, finished on the server as the
real one does.
"""

from __future__ import annotations

from ctrlruntime.apiserver.tables.builtin import cells, columns
from ctrlruntime.apiserver.tables.custom import custom_cells, custom_columns
from ctrlruntime.apiserver.tables.durations import age, duration

__all__ = ["age", "cells", "columns", "custom_cells", "custom_columns", "duration"]
