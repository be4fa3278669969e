"""What kube-apiserver said about some hundred expressions (`recorded.json`): compile errors, values and runtime errors, costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded.json").read_text(encoding="utf-8"))
