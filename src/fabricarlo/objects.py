"""Whole objects in a Zarr store: the ledger's and the heartbeats' bytes, beside the arrays."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Coroutine, Iterable, Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from zarr.abc.store import RangeByteRequest, Store
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import LocalStore, MemoryStore, ObjectStore

from fabricarlo.errors import StoreError

_Result = TypeVar("_Result")
_BATCH = 1024  # requests in flight at once

RETRY: dict[str, Any] = {"max_retries": 12, "retry_timeout": timedelta(minutes=3)}
"""How long an object store that answers 5xx, or not at all, is asked again."""
CLIENT: dict[str, Any] = {"timeout": "60s", "connect_timeout": "10s"}


@cache
def _loop() -> asyncio.AbstractEventLoop:
    # a loop of our own, because a notebook already runs one in the calling thread
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="fabricarlo-objects", daemon=True).start()
    return loop


def _wait(work: Coroutine[Any, Any, _Result]) -> _Result:
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


def is_url(path: object) -> bool:
    """Whether a store's place is an object store, such as s3://bucket/name."""
    return isinstance(path, str) and "://" in path


def open_store(path: str | Path | None) -> Store:
    """A local directory, an object store by its URL, or memory where there is no path.

    Raises StoreError for a URL that cannot be used here.
    """
    if path is None:
        return MemoryStore()
    return _object_store(str(path)) if is_url(path) else LocalStore(Path(path))


def _object_store(url: str) -> Store:
    try:
        from obstore.store import from_url
    except ImportError:
        raise StoreError(
            f"{url}: object stores need the package obstore: pip install 'fabricarlo[s3]'."
        ) from None
    try:
        plain = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("true", "1", "yes")
        client = CLIENT | {"allow_http": plain}  # options given here hide those of the environment
        options: Any = {"retry_config": RETRY, "client_options": client}
        return ObjectStore(from_url(url, **options))
    except Exception as error:  # whatever obstore thinks of a URL or of the environment
        raise StoreError(
            f"{url} cannot be used: {_first_line(error)}. Write s3://BUCKET/NAME; credentials, "
            "region and endpoint come from the environment (AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT; AWS_ALLOW_HTTP=true for plain http)."
        ) from None


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0].rstrip(". ")


@cache
def failures() -> tuple[type[Exception], ...]:
    """What reading and writing raise when the disk or the object store refuses or fails."""
    try:
        from obstore.exceptions import BaseError
    except ImportError:
        return (OSError,)
    return (OSError, cast(type[Exception], BaseError))


def reason_of(error: BaseException) -> str:
    """One line of what such an error says."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return _first_line(error)


class Objects:
    """Bytes by key in a store; writing a key is atomic."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def get(self, key: str) -> bytes | None:
        """The bytes under a key, or None."""
        found = _wait(self.store.get(key, default_buffer_prototype()))
        return None if found is None else found.to_bytes()

    def get_range(self, key: str, start: int, stop: int) -> bytes | None:
        """Some bytes under a key, fewer where it ends before `stop`; None where it is missing."""
        return _wait(self._beginning(key, RangeByteRequest(start, stop)))

    async def _beginning(self, key: str, asked: RangeByteRequest | None) -> bytes | None:
        try:
            found = await self.store.get(key, default_buffer_prototype(), asked)
        except failures() as error:
            if asked is None or "416" not in str(error):
                raise
            return b""  # an object store's word for a range that begins beyond the end
        return None if found is None else found.to_bytes()

    def get_all(self, keys: list[str], stop: int | None = None) -> list[bytes | None]:
        """Several objects at once; with `stop` only their first bytes."""
        asked = None if stop is None else RangeByteRequest(0, stop)

        async def some(part: list[str]) -> list[bytes | None]:
            return list(await asyncio.gather(*(self._beginning(k, asked) for k in part)))

        batches = (keys[k : k + 64] for k in range(0, len(keys), 64))
        return [found for batch in batches for found in _wait(some(batch))]

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

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write a key unless it is there; whether it holds our bytes now.

        The answer is read back: a request that was sent again because its reply was lost finds
        what it wrote itself. So the bytes must be this process's alone.
        """
        buffer = default_buffer_prototype().buffer.from_bytes(data)
        _wait(self.store.set_if_not_exists(key, buffer))
        return self.get(key) == data

    def delete(self, key: str) -> None:
        """Remove a key; a missing one is fine."""
        _wait(self.store.delete(key))

    def delete_all(self, keys: Iterable[str]) -> None:
        """Remove several keys."""
        keys = list(keys)

        async def gone(part: list[str]) -> None:
            await asyncio.gather(*map(self.store.delete, part))

        for k in range(0, len(keys), _BATCH):
            _wait(gone(keys[k : k + _BATCH]))

    def clear(self, prefix: str) -> None:
        """Remove everything below a prefix."""
        for left in reversed(range(5)):
            try:
                _wait(self.store.delete_dir(prefix))
                return
            except (FileNotFoundError, OSError):
                # another process wrote, or cleared, in between
                if not left:
                    raise

    def keys(self, prefix: str) -> list[str]:
        """Keys below a prefix, sorted; without what a process that died left half written."""

        async def listed() -> list[str]:
            return [key async for key in self.store.list_prefix(prefix)]

        for left in reversed(range(20)):
            try:
                return sorted(k for k in _wait(listed()) if not k.endswith(".partial"))
            except FileNotFoundError:  # a directory that another process removed meanwhile
                if not left:
                    raise
        raise AssertionError

    def is_empty(self) -> bool:
        """Whether nothing is stored."""
        return _wait(self.store.is_empty(""))

    def sizes(self, keys: list[str]) -> list[int | None]:
        """Sizes in bytes; None where a key is missing."""
        if isinstance(self.store, LocalStore):
            return [_size_of(self.store.root / key) for key in keys]

        async def size(key: str) -> int | None:
            try:
                return await self.store.getsize(key)
            except FileNotFoundError:
                return None

        async def sizes_of(some: list[str]) -> list[int | None]:
            return list(await asyncio.gather(*map(size, some)))

        batches = (keys[k : k + _BATCH] for k in range(0, len(keys), _BATCH))
        return [found for batch in batches for found in _wait(sizes_of(batch))]


def _size_of(path: Path) -> int | None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return os.stat(path).st_size
    return None
