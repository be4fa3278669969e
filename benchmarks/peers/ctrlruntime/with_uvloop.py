"""The same program on uvloop's event loop: `python -m benchmarks.peers.ctrlruntime.with_uvloop WORKLOAD …`."""

from __future__ import annotations

import uvloop

from benchmarks.peers.ctrlruntime.__main__ import main

if __name__ == "__main__":
    uvloop.run(main())
