"""How the network between NVLink domains is built, beside its ports: tiers, planes, flows."""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class UpperTiers:
    """What the tiers above the leaves are like."""

    spine_oversubscription: Array = quantity(
        "1",
        "ratio of downlink to uplink capacity in the second tier, where a third is above it",
        bounds=(1, 100),
        default=1,
        source="[A]",
    )
    core_oversubscription: Array = quantity(
        "1",
        "ratio of downlink to uplink capacity in the third tier, where a fourth is above it",
        bounds=(1, 100),
        default=1,
        source="[A]",
    )
    cable_length_growth: Array = quantity(
        "1",
        "length of a cable over that of the tier below it (1 = all tiers alike)",
        bounds=(1, 20),
        default=1,
        source="cable_length is the mean of all tiers [A]",
    )


@record
class Planes:
    """Into how many networks a GPU's port is split."""

    planes: Array = quantity(
        "1",
        "equal lanes of a GPU's port, each into a network of its own (1 = not split)",
        bounds=(1, 16),
        default=1,
        source="8 x 100G of an 800G adapter in MRC, May 2026 [S]; not split [A]",
        integer=True,
    )


@record
class Flows:
    """How many flows a GPU's port carries at once."""

    flows_per_port: Array = quantity(
        "1",
        "flows (queue pairs) that one GPU's port sends at once",
        bounds=(1, 1024),
        default=1,
        source="one queue pair a connection, NCCL_IB_QPS_PER_CONNECTION default 1 [A]",
        integer=True,
    )


@record
class Spraying:
    """How well packets spread when each takes its own way."""

    spraying_efficiency: Array = quantity(
        "1",
        "share of the path's capacity left when packets are sprayed over all ways",
        bounds=(0.01, 1),
        default=0.98,
        source="0.98 of line rate, Spectrum-X multiplane, arXiv:2605.21187, abstract [V]",
    )
