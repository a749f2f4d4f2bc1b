"""Who works on a store: a heartbeat per process, and a test of whether another one still beats."""

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fabricarlo.errors import StoreError
from fabricarlo.objects import Objects

PREFIX = "_run/processes/"
BEAT = 1.0  # s between two beats
PATIENCE = 5.0  # s without a beat after which a process of another machine counts as gone


class Presence:
    """This process on a store, from `join` to `leave`.

    A beat is a counter, timed by whoever watches on its own monotonic clock, so that clocks of two
    machines are never compared. On one machine a dead process is recognised at once.
    """

    def __init__(self, objects: Objects, share: tuple[int, int]) -> None:
        self.objects, self.share = objects, share
        self.token = uuid.uuid4().hex
        self._beat = 0
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._keep_beating, daemon=True)
        self._key = ""

    def join(self, name: str) -> None:
        """Take this share of the store.

        Raises StoreError while a live process holds it, or shares the store in another way.
        """
        for key, other in self._others():
            clash = other["share"] == list(self.share) or other["share"][1] != self.share[1]
            if clash and self._is_alive(key, other):
                taken = "/".join(map(str, other["share"]))
                raise StoreError(
                    f"{name} is held by a live process (share {taken}, process {other['pid']} on "
                    f"{other['host']}); wait for it, stop it, or choose another --out."
                )
        self._claim(name)
        for key, other in self._others():  # who claimed at the same moment, and first?
            clash = other["share"] == list(self.share) or other["share"][1] != self.share[1]
            first = (_epoch(key), other["token"]) < (_epoch(self._key), self.token)
            if clash and first and self._is_alive(key, other):
                self.leave()
                raise StoreError(f"{name} was taken by another process just now; wait for it.")
        self._thread.start()

    @contextlib.contextmanager
    def alone(self, task: str) -> Iterator[None]:
        """Do something that only one process may do at a time; wait for a live one to end it."""
        key = f"_run/{task}.json"
        while True:
            self.objects.put_if_absent(key, self._record())
            token = json.loads(self.objects.get(key) or b"{}").get("token")
            if token == self.token:
                break
            if not any(r["token"] == token and self._is_alive(k, r) for k, r in self._others()):
                self.objects.delete(key)
            time.sleep(BEAT / 4)
        try:
            yield
        finally:
            self.objects.delete(key)

    def _claim(self, name: str) -> None:
        part, of = self.share
        prefix = f"{PREFIX}{part}of{of}."
        mine = [k for k in self.objects.keys(PREFIX) if k.startswith(prefix)]
        epochs = [_epoch(k) for k in mine]
        self._key = f"{prefix}{max(epochs, default=0) + 1}.json"
        self.objects.put_if_absent(self._key, self._record())
        if json.loads(self.objects.get(self._key) or b"{}").get("token") != self.token:
            raise StoreError(f"{name} was taken by another process just now; wait for it to end.")

    def leave(self) -> None:
        """Stop beating and say so."""
        self._left.set()
        if self._thread.is_alive():
            self._thread.join()
        with contextlib.suppress(OSError):
            self.objects.delete(self._key)

    def _keep_beating(self) -> None:
        while not self._left.wait(BEAT):
            self._beat += 1
            # a full disk is reported by the writer of blocks; a missed beat alone harms nothing
            with contextlib.suppress(OSError):
                self.objects.put(self._key, self._record())

    def _record(self) -> bytes:
        record = {"share": self.share, "token": self.token, "beat": self._beat} | _identity(
            os.getpid()
        )
        return json.dumps(record).encode()

    def _others(self) -> list[tuple[str, dict[str, Any]]]:
        found = []
        for key in self.objects.keys(PREFIX):
            with contextlib.suppress(ValueError, TypeError, AttributeError):
                record = json.loads(self.objects.get(key) or b"")
                if {"share", "token", "pid", "host", "machine", "started"} <= record.keys():
                    found.append((key, record))
        return found

    def _is_alive(self, key: str, record: dict[str, Any]) -> bool:
        here = _identity(record["pid"])
        if record["machine"] == here["machine"]:
            return record["started"] == here["started"] != ""
        return _moves(lambda: self.objects.get(key))


def _epoch(key: str) -> int:
    """Number of a claim, from its key; 0 for a name of other hands."""
    number = key.rpartition("/")[2].split(".")[1]
    return int(number) if number.isdecimal() else 0


def live_processes(objects: Objects) -> list[str]:
    """Descriptions of the processes that hold a store now."""
    watcher = Presence(objects, (0, 1))
    return [
        f"process {r['pid']} on {r['host']}"
        for k, r in watcher._others()
        if watcher._is_alive(k, r)
    ]


def _moves(read: Callable[[], bytes | None]) -> bool:
    """Whether a record changes while we watch it."""
    first, end = read(), time.monotonic() + PATIENCE
    while time.monotonic() < end:
        time.sleep(BEAT / 4)
        if (now := read()) != first:
            return now is not None
    return False


def _identity(pid: int) -> dict[str, Any]:
    """What makes a process of this machine recognisable, also after its number was given anew."""
    machine = socket.gethostname()
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        with contextlib.suppress(OSError):
            link = Path(path).is_symlink()
            machine += "/" + (
                str(Path(path).readlink()) if link else Path(path).read_text().strip()
            )
    return {"pid": pid, "host": socket.gethostname(), "machine": machine, "started": _started(pid)}


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
