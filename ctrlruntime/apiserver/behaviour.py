"""How a Pod behaves in the simulation, said by annotations on the Pod (or in the template it is made from).

| annotation `simulation.ctrlruntime.dev/…` | value |
|---|---|
| `outcome` | see OUTCOMES; without it a Pod of a Job succeeds and every other runs and is Ready |
| `ready-after` | seconds (or `1m30s`) from binding to readiness, instead of the server's `pod_ready_delay` |
| `run-for` | how long containers that end (`succeed`, `fail`, `crash-loop`) run before they do; 0 |
| `exit-code` | the code with which `fail` and `crash-loop` end; 1 |
| `restart-delay` | the first backoff of a container that is restarted; it doubles up to 300 s; 10 s |
| `terminate-after` | how long a deleted Pod takes to end, within its grace period; 0 |
| `log`, `log.CONTAINER` | what `pods/log` answers for every container, or for one |

What containers use of CPU and memory is said by annotations, too: see `apiserver.usage`.

Read by the simulated kubelet and by `http.logs`. Annotations may be changed while the Pod runs: one that loses its
outcome `never-ready` or `crash-loop` gets well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ctrlruntime.schema.trees import Document

PREFIX: Final = "simulation.ctrlruntime.dev/"
OUTCOME_ANNOTATION: Final = f"{PREFIX}outcome"
LOG_ANNOTATION: Final = f"{PREFIX}log"
OUTCOMES: Final = {
    "ready": "containers run, and the Pod is Ready",
    "never-ready": "containers run, and the Pod never is Ready",
    "succeed": "containers end with code 0; the restart policy says what follows",
    "fail": "containers end with `exit-code`; the restart policy says what follows: a crash loop, or phase Failed",
    "crash-loop": "containers end with `exit-code` and are restarted whatever the restart policy (CrashLoopBackOff)",
    "image-pull-error": "the image cannot be had (ErrImagePull, then ImagePullBackOff); the Pod stays Pending",
    "pending": "containers are never started (ContainerCreating); the Pod stays Pending",
}
_PART: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ms|s|m|h)?")
_UNITS: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_FIRST_BACK_OFF: Final = 10.0
_LONGEST_BACK_OFF: Final = 300.0


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What the annotations of one Pod say."""

    outcome: str = "ready"
    ready_after: float | None = None
    run_for: float = 0.0
    exit_code: int = 1
    restart_delay: float = _FIRST_BACK_OFF
    terminate_after: float = 0.0

    @property
    def ends_with(self) -> int | None:
        """The exit code of containers that end; None when they run on."""
        if self.outcome == "succeed":
            return 0
        return self.exit_code if self.outcome in {"fail", "crash-loop"} else None

    def restarts(self, policy: str) -> bool:
        """Tell whether an ended container is started again."""
        if self.outcome == "crash-loop" or policy == "Always":
            return True
        return policy == "OnFailure" and self.ends_with != 0

    def back_off(self, restarts: int) -> float:
        """Return the seconds before the restart that follows the `restarts`-th one."""
        longest = max(self.restart_delay, _LONGEST_BACK_OFF)
        return min(self.restart_delay * float(2 ** min(max(restarts - 1, 0), 20)), longest)


def behaviour_of(pod: Document, *, is_job: bool) -> Behaviour:
    """Read the annotations of a Pod; what cannot be read counts as not said."""
    given = {
        key.removeprefix(PREFIX): str(value)
        for key, value in (pod["metadata"].get("annotations") or {}).items()
        if key.startswith(PREFIX)
    }
    outcome = given.get("outcome", "")
    if outcome not in OUTCOMES:
        outcome = "succeed" if is_job else "ready"
    code = given.get("exit-code", "")
    return Behaviour(
        outcome=outcome,
        ready_after=_seconds(given, "ready-after", None),
        run_for=_seconds(given, "run-for", None) or 0.0,
        exit_code=int(code) if code.isdigit() and int(code) < 256 else 1,
        restart_delay=_seconds(given, "restart-delay", None) or _FIRST_BACK_OFF,
        terminate_after=_seconds(given, "terminate-after", None) or 0.0,
    )


def log_of(pod: Document, container: str) -> str:
    """Return the text that a container has logged; its last line has an end."""
    annotations: Document = pod["metadata"].get("annotations") or {}
    text = str(annotations.get(f"{LOG_ANNOTATION}.{container}", annotations.get(LOG_ANNOTATION, "")))
    return text if not text or text.endswith("\n") else f"{text}\n"


def _seconds(given: dict[str, str], name: str, absent: float | None) -> float | None:
    text = given.get(name, "").strip()
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return absent
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
