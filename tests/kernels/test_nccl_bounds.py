"""No choice of NCCL's cost model is faster than the links that it goes over."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_kernels.collective.nccl_model import (
    NCCL_ALGORITHMS,
    NCCL_PROTOCOLS,
    OPERATIONS,
    Able,
    Group,
    channels_of,
    cost,
)
from fabric_kernels.inputs import CollectiveLibrary
from fabric_kernels.model import ModelError
from tests.kernels.nccl_lanes import lanes
from tests.reference import nccl_cost
from tests.reference.nccl_cost import Case

GBIT = 1e9 / 8
DOMAINS = (1, 2, 3, 4, 7, 8, 64, 4096)
PORTS = tuple(GBIT * rate for rate in (50, 100, 200, 400, 800, 1600, 3200, 6400))
"""Rate of the port of every GPU, slowest first."""
ROUNDING = 1e-5
ADDING = ("nvls", "nvls_tree", "collnet_direct", "collnet_chain")
"""Switches add: the payload passes a link once each way, which the bus convention counts 2 (n - 1)
/ n times."""

Made = dict[tuple[str, str], tuple[jax.Array, jax.Array]]


def every_choice(
    operation: str,
    group: Group,
    able: Able,
    library: CollectiveLibrary,
    rates: tuple[jax.Array, ...],
) -> Made:
    """(algorithm, protocol) -> transfer, time."""
    nvlink, port = rates
    channels = channels_of(library, group, nvlink, port * group.gpus_per_node)
    made: Made = {}
    for algorithm, protocol in itertools.product(NCCL_ALGORITHMS, NCCL_PROTOCOLS):
        only = {"algorithms": (algorithm,), "protocols": (protocol,)}
        try:
            found = cost(operation, group, channels, able, library, **only)
        except ModelError:
            continue
        made[algorithm, protocol] = found.transfer, found.time
    return made


KERNELS = {o: jax.jit(lambda *given_, o=o: every_choice(o, *given_)) for o in OPERATIONS}


def found(machine: Case, nvlink: float) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    """Bus bandwidth without latency, and time: a row for every number of domains."""
    shape = (len(DOMAINS), len(PORTS))
    group, _, able, library = lanes([machine])
    domains = jnp.asarray(np.broadcast_to(np.float32(DOMAINS)[:, None], shape))
    ports = jnp.asarray(np.broadcast_to(np.float32(PORTS)[None, :], shape))
    group = group._replace(nodes=domains)
    rates = (jnp.full(shape, nvlink, jnp.float32), ports)
    made = KERNELS[machine.operation](group, able, library, rates)
    ranks = np.float64(DOMAINS)[:, None] * machine.per_node
    share = machine.passes * (ranks - 1) / ranks
    answers = {}
    for name, (transfer, time) in made.items():
        taken = np.asarray(transfer, float)
        taken = np.where(taken > 0, taken, np.inf)  # one rank alone
        answers[name] = (share * machine.size / taken, np.asarray(time))
    return answers


MACHINES = st.builds(
    Case,
    operation=st.sampled_from(OPERATIONS),
    size=st.sampled_from((2**20, 2**33)),
    nodes=st.just(1),
    per_node=st.sampled_from((1, 8, 72)),
    channels=st.sampled_from((1, 2, 16, 32, 64)),
    generation=st.sampled_from(nccl_cost.GENERATIONS),
    fabric_adds=st.booleans(),
)


@settings(max_examples=40, derandomize=True, deadline=None)
@given(MACHINES, st.sampled_from((150e9, 450e9, 900e9)))
def test_no_choice_is_faster_than_its_links(machine: Case, nvlink: float):
    """Every channel passes every GPU of a domain but for the NVLinks of the one it leaves by."""
    domains = np.array(DOMAINS)[:, None]
    leaving = np.where(domains > 1, machine.per_node / max(machine.per_node - 1, 1), 1.0)
    inside = nvlink * leaving if machine.per_node > 1 else np.inf
    outside = np.where(domains > 1, np.array(PORTS) * machine.per_node, np.inf)
    narrowest = np.minimum(inside, outside)
    for (algorithm, protocol), (bus, time) in found(machine, nvlink).items():
        most = narrowest * (2 if algorithm in ADDING else 1) * (1 + ROUNDING)
        assert np.all(bus <= most), (algorithm, protocol)
        usable = np.isfinite(time).all(axis=1)
        assert np.all(np.diff(time[usable], axis=1) <= 0), "faster ports never take longer"
        if algorithm == "ring" and machine.per_node > 1:
            assert np.all(bus <= bus[:1] * leaving * (1 + ROUNDING)), "faster than one domain"


@pytest.mark.parametrize(
    ("per_node", "nvlink", "port"), [(72, 900e9, 800 * GBIT), (8, 450e9, 800 * GBIT)]
)
def test_ports_wider_than_nvlink_give_a_ring_of_nvlink(per_node: int, nvlink: float, port: float):
    """GB200 NVL72 and H100 with 800 Gbit/s a GPU: 64 channels, NVLink of one GPU in all."""
    machine = Case("all_reduce", 2**33, 1, per_node, channels=64)
    bus, _ = found(machine, nvlink)["ring", "simple"]
    several = np.array(DOMAINS) > 2  # of two, NCCL takes the rate inside
    expected = np.where(several, nvlink * per_node / (per_node - 1), nvlink)
    assert bus[:, PORTS.index(port)] == pytest.approx(expected, rel=ROUNDING)
