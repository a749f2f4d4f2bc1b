"""Blocks that processes claim one group after the other, instead of fixed shares.

A claim is an object `group.epoch` that is written only if it is not there. Whose holder is gone, or
has not been heard of for a lease, is followed by epoch + 1. If the holder wakes up after all, both
compute the same blocks: the same bits are written twice and counted once.
"""

import json
import time
from collections.abc import Container, Iterator

from fabricarlo import presence
from fabricarlo.compaction import GROUP
from fabricarlo.intervals import Intervals
from fabricarlo.layout import Layout
from fabricarlo.objects import Objects
from fabricarlo.presence import Presence

PREFIX = "_run/claims/"
GROUPS = 256  # a sweep has at least so many, if it has so many blocks: they end together
REFRESH = 2.0  # s after which the list of claims is read again when one is met that was not known


def group_size(blocks: int) -> int:
    """Blocks that are claimed at once: a power of two, the same for every process of a plan."""
    size = 1
    while size < GROUP and blocks // (2 * size) >= GROUPS:
        size *= 2
    return size


class Claims:
    """The claims of one process on the groups of a plan's blocks."""

    def __init__(self, objects: Objects, layout: Layout, mine: Presence) -> None:
        self.objects, self.layout, self.mine = objects, layout, mine
        self.size = group_size(layout.block_count)
        self.count = -(-layout.block_count // self.size)
        self.prefix = f"{PREFIX}{layout.samples}/"
        self._known: dict[int, int] = {}  # group -> its last epoch
        self._read = -REFRESH

    def unclaimed(self, done: Intervals, failed: Container[int]) -> Iterator[int]:
        """Missing blocks of groups that nobody had claimed, claimed one by one."""
        self._refresh()
        # everyone begins elsewhere, so that few meet
        first = int(self.mine.token[:12], 16) % max(1, self.count)
        for group in self._missing(done, first):
            if group in self._known:
                continue
            if self._take(group, 1):
                yield from self._blocks(group, 1, done, failed)
            elif time.monotonic() - self._read > REFRESH:
                self._refresh()

    def abandoned(self, done: Intervals, failed: Container[int]) -> Iterator[int]:
        """Missing blocks of one group whose claim has run out, claimed by the next epoch.

        One group only: what is done must be read again before the next.
        """
        self._refresh()
        holders = {}
        for group in self._missing(done, 0):
            if epoch := self._known.get(group, 0):
                holders[group] = presence.holder_of(self.objects.get(self._key(group, epoch)))
            if not holders.get(group) and self._take(group, epoch + 1):
                yield from self._blocks(group, epoch + 1, done, failed)
                return
        holding = self.mine.watch.holding()
        for group, holder in holders.items():
            epoch = self._known[group]
            if holder not in holding and self._take(group, epoch + 1):
                yield from self._blocks(group, epoch + 1, done, failed)
                return

    def held(self, done: Intervals) -> dict[str, list[tuple[int, int]]]:
        """Blocks that are claimed and not done, as ranges, by the token of who claims them."""
        self._refresh()
        found: dict[str, list[tuple[int, int]]] = {}
        for group in self._missing(done, 0):
            if epoch := self._known.get(group):
                holder = presence.holder_of(self.objects.get(self._key(group, epoch)))
                end = min((group + 1) * self.size, self.layout.block_count)
                found.setdefault(holder, []).extend(done.missing(group * self.size, end))
        return found

    def forget(self) -> None:
        """Remove all claims of a finished store."""
        self.objects.clear(PREFIX.rstrip("/"))

    def _missing(self, done: Intervals, first: int) -> Iterator[int]:
        """Groups with a missing block, from `first` on and around."""
        begin, end = first * self.size, self.layout.block_count
        last = -1
        for bounds in ((begin, end), (0, begin)):
            for start, stop in done.missing(*bounds):
                for group in range(start // self.size, -(-stop // self.size)):
                    if group != last:
                        yield group
                    last = group

    def _blocks(
        self, group: int, epoch: int, done: Intervals, failed: Container[int]
    ) -> Iterator[int]:
        end = min((group + 1) * self.size, self.layout.block_count)
        for start, stop in done.missing(group * self.size, end):
            for number in range(start, stop):
                if number in failed:
                    continue
                begin = time.monotonic()
                yield number
                slept = time.monotonic() - begin > presence.LEASE / 2
                if slept and self.objects.get(self._key(group, epoch + 1)) is not None:
                    return  # frozen for so long that another has taken it

    def _take(self, group: int, epoch: int) -> bool:
        taken = self.objects.put_if_absent(
            self._key(group, epoch), json.dumps({"token": self.mine.token}).encode()
        )
        self._known[group] = epoch
        return taken

    def _key(self, group: int, epoch: int) -> str:
        return f"{self.prefix}{group}.{epoch}.json"

    def _refresh(self) -> None:
        for key in self.objects.keys(self.prefix):
            parts = key.rpartition("/")[2].split(".")
            if len(parts) == 3 and parts[0].isdecimal() and parts[1].isdecimal():
                group, epoch = int(parts[0]), int(parts[1])
                self._known[group] = max(epoch, self._known.get(group, 0))
        self._read = time.monotonic()
