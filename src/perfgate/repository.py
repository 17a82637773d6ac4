"""All of git: the commit under test, whether the tree is dirty, and the hash of a folder's content."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

UNKNOWN = "unknown"
TIMEOUT_SECONDS = 20


def _git(root: Path, *arguments: str) -> str | None:
    """The command's output; ``None`` without git, outside a repository, or where git refuses."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.rstrip("\n") if done.returncode == 0 else None


def commit(root: Path, *, ignoring: str) -> dict[str, str]:
    """``id``, ``branch`` and ``dirty`` (yes, no, unknown); changes in the folder ``ignoring`` do not make it dirty."""
    head = _git(root, "rev-parse", "--verify", "HEAD")
    if head is None:
        return {"id": UNKNOWN, "branch": UNKNOWN, "dirty": UNKNOWN}
    changes = _git(root, "status", "--porcelain", "--", ".", f":(exclude){ignoring}")
    return {
        "id": head,
        "branch": _git(root, "rev-parse", "--abbrev-ref", "HEAD") or UNKNOWN,
        "dirty": UNKNOWN if changes is None else "yes" if changes else "no",
    }


def tree_hash(folder: Path) -> str:
    """SHA-256 (16 digits) over names and contents of the Python files below ``folder``, in git or not."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
