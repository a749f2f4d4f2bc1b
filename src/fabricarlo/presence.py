"""Who works on a store: a heartbeat per process, and a test of whether another one still beats."""

import contextlib
import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from fabricarlo.errors import StoreError
from fabricarlo.identity import identity
from fabricarlo.objects import Objects, failures

PREFIX = "_run/processes/"
LOCKS = "_run/locks/"
BEAT = 1.0  # s between two beats
PATIENCE = 10.0  # s without a beat after which a process of another machine counts as gone
LEASE = 60.0  # s without a beat after which what a process holds is another's, dead or frozen

Share = tuple[int, int] | None
"""K of N fixed shares, or None for blocks that are claimed one after the other."""


class Watch:
    """Whether other processes still beat.

    A beat is a counter, timed here by the watcher's own monotonic clock: the clocks of two machines
    are never compared. On one machine a dead process is recognised at once.
    """

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self._seen: dict[str, tuple[Any, float]] = {}  # token -> last beat, and when it was new

    def all(self) -> list[tuple[str, dict[str, Any]]]:
        """Key and record of every process."""
        found = []
        keys = self.objects.keys(PREFIX)
        for key, data in zip(keys, self.objects.get_all(keys), strict=True):
            with contextlib.suppress(ValueError, TypeError, AttributeError):
                record = json.loads(data or b"")
                if {"share", "token", "beat", "pid", "host", "machine", "started"} <= record.keys():
                    found.append((key, record))
        return found

    def is_alive(self, key: str, record: dict[str, Any]) -> bool:
        """Whether a process exists, frozen or not; waits for a beat of another machine's."""
        here = identity(record["pid"])
        if record["machine"] == here["machine"]:
            return record["started"] == here["started"] != ""
        return _moves(lambda: self.objects.get(key))

    def holding(self) -> set[str]:
        """Tokens of the processes whose leases run: not gone, and heard of within LEASE."""
        return {r["token"] for _, r in self.all() if self._beats(r)}

    def forget_the_dead(self) -> None:
        """Remove the records of processes of this machine that are gone."""
        holding = self.holding()
        self.objects.delete_all(k for k, r in self.all() if r["token"] not in holding)

    def _beats(self, record: dict[str, Any]) -> bool:
        here, now = identity(record["pid"]), time.monotonic()
        if record["machine"] == here["machine"] and record["started"] != here["started"]:
            return False
        beat, since = self._seen.get(record["token"], (None, now))
        if beat != record["beat"]:
            self._seen[record["token"]] = (record["beat"], now)
            return True
        return now - since <= LEASE


class Presence:
    """This process on a store, from `join` to `leave`."""

    def __init__(self, objects: Objects, share: Share, samples: int = 0) -> None:
        self.objects, self.share, self.samples = objects, share, samples
        self.watch = Watch(objects)
        self.token = uuid.uuid4().hex
        self.progress: Callable[[], dict[str, Any]] = dict
        self._beat = 0
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._keep_beating, daemon=True)
        self._key = ""

    @property
    def name(self) -> str:
        """A name in the store that no other process has, ever."""
        return f"{_shown(self.share).replace('/', 'of')}-{self.token[:12]}"

    def join(self, name: str) -> None:
        """Take this share of the store.

        Raises StoreError while a live process holds it, or shares the store in another way.
        """
        for key, other in self.watch.all():
            if (why := self._clash(other)) and self.watch.is_alive(key, other):
                raise StoreError(
                    f"{name} is held by a live process ({why}, process {other['pid']} on "
                    f"{other['host']}); wait for it, stop it, or choose another --out."
                )
        self._claim(name)
        for key, other in self.watch.all():  # who claimed at the same moment, and first?
            first = (_epoch(key), other["token"]) < (_epoch(self._key), self.token)
            if self._clash(other) and first and self.watch.is_alive(key, other):
                self.leave()
                raise StoreError(f"{name} was taken by another process just now; wait for it.")
        self._thread.start()

    def _clash(self, other: dict[str, Any]) -> str:
        """Why another process, if it lives, leaves no room for this one; empty where it does."""
        if other["token"] == self.token:
            return ""
        theirs = None if other["share"] is None else tuple(other["share"])
        if theirs is None or self.share is None:
            together = theirs == self.share
        else:
            together = theirs != self.share and theirs[1] == self.share[1]
        if not together:
            return f"share {_shown(theirs)}"
        if self.samples and other.get("samples", self.samples) != self.samples:
            return f"for {other['samples']:,} samples a cell"
        return ""

    @contextlib.contextmanager
    def alone(self, task: str, waiting: Callable[[], None]) -> Iterator[None]:
        """Do something that only one process may do at a time.

        `waiting` is called while another, live process does it. A lock is never removed, only
        followed by one of the next number, so that of several who find it free one gets it.
        """
        prefix = f"{LOCKS}{task}."
        while True:
            epochs = [_epoch(k) for k in self.objects.keys(LOCKS) if k.startswith(prefix)]
            top = max(epochs, default=0)
            holder = holder_of(self.objects.get(f"{prefix}{top}.json")) if top else ""
            if not holder or holder not in self.watch.holding():
                key = f"{prefix}{top + 1}.json"
                if self.objects.put_if_absent(key, _by(self.token)):
                    break
            waiting()
            time.sleep(BEAT / 4)
        try:
            yield
        finally:
            with contextlib.suppress(*failures()):  # who has left holds nothing
                self.objects.put(key, _by(""))

    def _claim(self, name: str) -> None:
        if self.share is None:
            self._key = f"{PREFIX}elastic-{self.token}.1.json"
            self.objects.put(self._key, self._record())
            return
        part, of = self.share
        prefix = f"{PREFIX}{part}of{of}."
        mine = [k for k in self.objects.keys(PREFIX) if k.startswith(prefix)]
        epochs = [_epoch(k) for k in mine]
        self._key = f"{prefix}{max(epochs, default=0) + 1}.json"
        if not self.objects.put_if_absent(self._key, self._record()):
            raise StoreError(f"{name} was taken by another process just now; wait for it to end.")
        # what the dead left is of no use; the last one stays, so that numbers go on
        self.objects.delete_all(sorted(mine, key=_epoch)[:-1])

    def leave(self) -> None:
        """Stop beating and say so."""
        self._left.set()
        if self._thread.is_alive():
            self._thread.join()
        with contextlib.suppress(*failures()):
            self.objects.delete(self._key)

    def _keep_beating(self) -> None:
        while not self._left.wait(BEAT):
            self._beat += 1
            # a full disk is reported by the writer of blocks; a missed beat alone harms nothing
            with contextlib.suppress(*failures()):
                self.objects.put(self._key, self._record())

    def _record(self) -> bytes:
        mine = {"share": self.share, "samples": self.samples, "token": self.token}
        record = mine | {"beat": self._beat} | self.progress() | identity(os.getpid())
        return json.dumps(record).encode()


def _shown(share: Share) -> str:
    return "elastic" if share is None else f"{share[0]}/{share[1]}"


def _by(token: str) -> bytes:
    return json.dumps({"token": token}).encode()


def holder_of(data: bytes | None) -> str:
    """Whose token a lock or a claim has; empty where it is nobody's, or damaged."""
    try:
        return str(json.loads(data or b"")["token"])
    except (ValueError, KeyError, TypeError):
        return ""


def _epoch(key: str) -> int:
    """Number of a claim, from its key; 0 for a name of other hands."""
    parts = key.rpartition("/")[2].split(".")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else 0


def live_processes(objects: Objects) -> list[str]:
    """Descriptions of the processes that hold a store now."""
    watch = Watch(objects)
    return [f"process {r['pid']} on {r['host']}" for k, r in watch.all() if watch.is_alive(k, r)]


def _moves(read: Callable[[], bytes | None]) -> bool:
    """Whether a record changes while we watch it."""
    first, end = read(), time.monotonic() + PATIENCE
    while time.monotonic() < end:
        time.sleep(BEAT / 4)
        if (now := read()) != first:
            return now is not None
    return False
