"""Whole objects in a Zarr store: the ledger's and the heartbeats' bytes, beside the arrays."""

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from zarr.abc.store import Store
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import LocalStore, MemoryStore

_Result = TypeVar("_Result")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    # a loop of our own, because a notebook already runs one in the calling thread
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="fabricarlo-objects", daemon=True).start()
    return loop


def _wait(work: Coroutine[Any, Any, _Result]) -> _Result:
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


def open_store(path: str | Path | None) -> Store:
    """A local directory, or memory where there is no path."""
    return MemoryStore() if path is None else LocalStore(Path(path))


class Objects:
    """Bytes by key in a store; writing a key is atomic."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def get(self, key: str) -> bytes | None:
        """The bytes under a key, or None."""
        found = _wait(self.store.get(key, default_buffer_prototype()))
        return None if found is None else found.to_bytes()

    def put(self, key: str, data: bytes) -> None:
        """Write or replace a key."""
        _wait(self.store.set(key, default_buffer_prototype().buffer.from_bytes(data)))

    def put_all(self, objects: Mapping[str, bytes]) -> None:
        """Write or replace several keys at once."""
        prototype = default_buffer_prototype().buffer

        async def written() -> None:
            work = (self.store.set(k, prototype.from_bytes(d)) for k, d in objects.items())
            await asyncio.gather(*work)

        _wait(written())

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Write a key unless it is there; read it back to see who won."""
        buffer = default_buffer_prototype().buffer.from_bytes(data)
        _wait(self.store.set_if_not_exists(key, buffer))

    def delete(self, key: str) -> None:
        """Remove a key; a missing one is fine."""
        _wait(self.store.delete(key))

    def clear(self, prefix: str) -> None:
        """Remove everything below a prefix."""
        _wait(self.store.delete_dir(prefix))

    def keys(self, prefix: str) -> list[str]:
        """Keys below a prefix, sorted."""

        async def listed() -> list[str]:
            return [key async for key in self.store.list_prefix(prefix)]

        return sorted(_wait(listed()))

    def is_empty(self) -> bool:
        """Whether nothing is stored."""
        return _wait(self.store.is_empty(""))

    def sizes(self, keys: list[str]) -> list[int | None]:
        """Sizes in bytes; None where a key is missing."""

        async def size(key: str) -> int | None:
            try:
                return await self.store.getsize(key)
            except FileNotFoundError:
                return None

        async def sizes_of(some: list[str]) -> list[int | None]:
            return list(await asyncio.gather(*map(size, some)))

        batches = (keys[k : k + 1024] for k in range(0, len(keys), 1024))
        return [found for batch in batches for found in _wait(sizes_of(batch))]
