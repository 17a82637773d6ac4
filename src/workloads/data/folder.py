"""The folder that data files live in, outside the repository."""

import os
import tempfile
from pathlib import Path


def data_folder() -> Path:
    """``$PERFGATE_DATA``, else ``perfgate`` in the user's cache, else in the temporary folder; it may not exist yet."""
    chosen = os.environ.get("PERFGATE_DATA")
    if chosen:
        return Path(chosen).expanduser()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "perfgate"
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError:  # no home, or a read-only one
        return Path(tempfile.gettempdir()) / "perfgate-data"
    return cache if os.access(cache, os.W_OK) else Path(tempfile.gettempdir()) / "perfgate-data"
