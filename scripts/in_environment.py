"""A Python script imports this after the standard library: it starts the script again in `.venv`, which `scripts/environment` makes.

A script that already runs in an environment of `scripts/environment` stays there, and finds the programs of that environment first.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_ENVIRONMENT = Path(__file__).with_name("environment")
_RUN = 'source "$0" && environment .venv dev,docs && cd "$OLDPWD" && exec python "$@"'

if not Path(sys.prefix, ".stamp").is_file():
    os.execvp("bash", ["bash", "-ec", _RUN, str(_ENVIRONMENT), str(Path(sys.argv[0]).resolve()), *sys.argv[1:]])
os.environ["PATH"] = f"{Path(sys.prefix, 'bin')}{os.pathsep}{os.environ['PATH']}"
