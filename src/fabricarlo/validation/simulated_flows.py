"""Flows of the product's own packet-by-packet simulation, as many runs as a table has."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fabric_kernels.loss.event_level import Outcome, Run, go_back_n_run, selective_repeat_run
from fabric_kernels.loss.laws.channel import GilbertElliott, Independent
from fabricarlo.sampling.counted import Counted

LANES = 8192
MOST = 2 * LANES  # runs of one case: the tests allow for as many as there are
SEED = 20261130


class Case(NamedTuple):
    """One message of one flow over one channel."""

    scheme: str  # selective_repeat, gbn_renak or gbn_nak_once
    packets: int
    feedback: int
    window: int
    timeout: int
    channel: tuple[float, float, float, float]  # good loss, bad loss, worsens, improves


class Runs(NamedTuple):
    """Slots and timers of every run."""

    slots: NDArray[np.float64]
    timers: NDArray[np.int64]


@functools.lru_cache(maxsize=64)
def simulated(case: Case, number: int) -> Runs:
    """About `number` runs, at most MOST; a run that needs more memory of open losses gets it."""
    key = (SEED, hash_of(case))
    found = [_batch(case, key, first, 16) for first in range(0, min(number, MOST), LANES)]
    slots = np.concatenate([np.asarray(o.slots, np.float64).ravel() for o in found])
    timers = np.concatenate([np.asarray(o.timers, np.int64).ravel() for o in found])
    for lost in (128, 1024):
        for index in np.unique(np.flatnonzero(slots < 0) // LANES):
            again = _batch(case, key, int(index) * LANES, lost)
            part = slice(index * LANES, (index + 1) * LANES)
            slots[part] = np.asarray(again.slots, np.float64).ravel()
            timers[part] = np.asarray(again.timers, np.int64).ravel()
    if (slots < 0).any():
        raise RuntimeError(f"{case}: {int((slots < 0).sum())} runs did not come to an end.")
    return Runs(slots, timers)


def hash_of(case: Case) -> int:
    """A number for the key of a case, the same in every run of the program."""
    digest = 0
    for character in repr(case):
        digest = (digest * 1_000_003 + ord(character)) % 2**32
    return digest


def _batch(case: Case, key: tuple[int, int], first: int, open_losses: int) -> Outcome:
    whole = [jnp.full((1, 1), n, jnp.int32) for n in case[1:5]]
    channel = [jnp.full((1, 1), p, jnp.float32) for p in case.channel]
    keys = [jnp.full((1, 1), k % 2**32, jnp.uint32) for k in key]
    sample = (first + jnp.arange(LANES, dtype=jnp.uint32)).reshape(1, -1)
    uniforms = Counted(keys[0], keys[1], sample)
    independent = case.channel[2] == 0 and case.channel[0] == case.channel[1]
    process = Independent(channel[0]) if independent else GilbertElliott(*channel)
    return _compiled(case.scheme, open_losses)(Run(*whole), process, uniforms)


@functools.cache
def _compiled(scheme: str, open_losses: int):
    if scheme == "selective_repeat":
        return jax.jit(functools.partial(selective_repeat_run, open_losses=open_losses))
    return jax.jit(functools.partial(go_back_n_run, single_nak=scheme == "gbn_nak_once"))
