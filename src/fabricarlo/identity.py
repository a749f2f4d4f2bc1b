"""Which process of which machine: a dead one is recognised, and no other taken for it."""

import contextlib
import os
import socket
from functools import cache
from pathlib import Path
from typing import Any


def identity(pid: int) -> dict[str, Any]:
    """What makes a process of this machine recognisable, also after its number was given anew."""
    return {
        "pid": pid,
        "host": socket.gethostname(),
        "machine": _machine(),
        "started": _started(pid),
    }


@cache
def _machine() -> str:
    machine = socket.gethostname()
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        with contextlib.suppress(OSError):
            link = Path(path).is_symlink()
            machine += "/" + (
                str(Path(path).readlink()) if link else Path(path).read_text().strip()
            )
    return machine


def _started(pid: int) -> str:
    """Start time of a process in clock ticks since boot; empty for a dead one."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return _started_without_proc(pid)
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]


def _started_without_proc(pid: int) -> str:
    if Path("/proc/self/stat").exists():
        return ""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return "alive"
    except OSError:
        return ""
    return "alive"
