"""Pay for an expensive answer only when some lane needs it."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array

_Tree = TypeVar("_Tree")


def unless(usual: Array, common: _Tree, otherwise: Callable[[], _Tree]) -> _Tree:
    """`common` where `usual` holds, else what `otherwise` computes, lane by lane.

    `otherwise` runs for all lanes, but only if at least one lane needs it. A lane where `usual`
    holds gets the bits of `common` whatever its neighbours do, and any other lane gets those of
    `otherwise`, so the value of a lane never depends on the rest of the tile. All leaves have the
    shape of `usual`.
    """
    uncommon = jax.lax.cond(jnp.all(usual), lambda: common, otherwise)
    return jax.tree.map(lambda this, other: jnp.where(usual, this, other), common, uncommon)
