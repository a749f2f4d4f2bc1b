"""A finished store of 26 blocks that several files of tests compare with, or damage a copy of."""

import shutil
import time

import pytest

from tests.engine import small, victim

MANY = small.text(
    samples=400_000,
    axes={"gpus": [8192, 16384]},
    base=[*small.SPEC["base"], "fabric/roce-800g"],
)
"""26 blocks of 2^15, of two cells of one program."""
BLOCKS = 26


@pytest.fixture(scope="session")
def many():
    return MANY


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """Compiled programs for processes of their own."""
    return str(tmp_path_factory.mktemp("compiled"))


@pytest.fixture(scope="session")
def whole(tmp_path_factory, cache):
    """An uninterrupted store, and the seconds that a run takes when it compiles nothing new."""
    path = tmp_path_factory.mktemp("whole") / "store.zarr"
    for _ in range(2):
        shutil.rmtree(path, ignore_errors=True)
        begin = time.monotonic()
        victim.finish(MANY, path, cache=cache, block=2**15)
    return path, time.monotonic() - begin


@pytest.fixture
def copy(whole, tmp_path):
    """A finished store that may be damaged."""
    path = tmp_path / "copy.zarr"
    shutil.copytree(whole[0], path)
    return path


@pytest.fixture(scope="session")
def expected(whole):
    """Everything of the uninterrupted store."""
    return small.everything(whole[0])
