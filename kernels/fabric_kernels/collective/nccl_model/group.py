"""What NCCL's cost model is asked, and values of its tables for every lane."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective.nccl_model import tables
from fabric_kernels.inputs import CollectiveLibrary


class Group(NamedTuple):
    """The ranks of one collective call and its message."""

    payload: Array  # B, of all ranks together where it is gathered or scattered
    nodes: Array  # NVLink domains
    gpus_per_node: Array  # ranks in each of them

    @property
    def ranks(self) -> Array:
        """All ranks."""
        return self.nodes * self.gpus_per_node

    @property
    def levels(self) -> Array:
        """floor(log2(nodes)), exact at powers of two."""
        nodes = jnp.floor(self.nodes + 0.5)
        _, exponent = jnp.frexp(nodes)
        return (exponent - 1).astype(nodes.dtype)


class Channels(NamedTuple):
    """What NCCL's search for rings and trees found: rates of one channel, B/s."""

    inside: Array  # of rings and trees in a node; also decides two nodes
    across: Array  # between nodes
    multicast: Array  # inside, where the NVLink switch adds


class Able(NamedTuple):
    """What switches can add: 0 no, 1 yes."""

    nvlink: Array  # NVLink SHARP
    fabric: Array  # CollNet


class Asked(NamedTuple):
    """Everything that a cost depends on."""

    operation: str
    group: Group
    channels: Channels
    able: Able
    library: CollectiveLibrary

    @property
    def all_reduce(self) -> bool:
        """Whether ranks reduce and gather, the other operations do one of the two."""
        return self.operation == "all_reduce"

    @property
    def steps(self) -> Array:
        """Steps of a ring; 1 where one rank is alone."""
        steps = self.group.ranks - 1
        return jnp.maximum(2 * steps if self.all_reduce else steps, 1.0)

    @property
    def per_channel(self) -> Array:
        """Rate of a channel of a ring or tree."""
        several = self.group.nodes > 2.5
        return jnp.where(several, self.channels.across, self.channels.inside)


def by_generation(asked: Asked, values: tuple[float, float, float, float]) -> Array:
    """The value of the lane's GPU generation."""
    return _of_code(asked.library.gpu_generation, values)


def limit(asked: Asked, rows: tuple[tables.Row, ...]) -> Array:
    """The value of the lane's generation for its number of nodes (1, 2, more)."""
    return _of_row(asked, asked.library.gpu_generation, rows)


def ll_limit(asked: Asked) -> Array:
    """Most that LL carries: on one node by the GPU, else by the processor."""
    amd = asked.library.host_processor == 1
    row = jnp.where(amd, 1.0, jnp.zeros_like(asked.library.host_processor))
    alone = asked.group.nodes < 1.5
    row = jnp.where(alone, asked.library.gpu_generation, row)
    return _of_row(asked, row, tables.LL_LIMIT)


def _of_row(asked: Asked, code: Array, rows: tuple[tables.Row, ...]) -> Array:
    one, two, more = (_of_code(code, tuple(row[k] for row in rows)) for k in range(3))
    nodes = asked.group.nodes
    return jnp.where(nodes < 1.5, one, jnp.where(nodes < 2.5, two, more))


def _of_code(code: Array, values: tuple[float, ...]) -> Array:
    found = jnp.full_like(code, values[0])
    for number, value in enumerate(values[1:], start=1):
        if value != values[number - 1]:
            found = jnp.where(code > number - 0.5, value, found)
    return found


def tree_correction(asked: Asked, protocol: str) -> Array:
    """Factor on the rate of a tree: a step function of the message's power of two."""
    payload = asked.group.payload
    found, before = jnp.ones_like(payload), 1.0
    for power, value in enumerate((*tables.TREE_CORRECTION[protocol], 1.0)):
        if value != before:
            start = float(tables.TREE_CORRECTION_START * 2**power)
            found = jnp.where(payload >= start, float(value), found)
        before = value
    return found
