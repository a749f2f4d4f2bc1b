"""What adds to the noise of single hops: slow ranks, late starts, full receivers, common pauses."""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class HopConditions:
    """What is not redrawn at every hop, or hits many hops at once."""

    persistent_hop_deviation: Array = quantity(
        "s",
        "standard deviation over the ranks of a delay that a rank adds to each of its hops",
        bounds=(0, 1),
        default=0,
        source="[A]",
    )
    receive_slots: Array = quantity(
        "1",
        "messages that a receiver holds before the sender has to wait (8 and more: no limit)",
        bounds=(1, 1024),
        default=8,
        source="[A]",
    )
    arrival_deviation: Array = quantity(
        "s",
        "standard deviation over the ranks of the time at which they enter an exchange",
        bounds=(0, 10),
        default=0,
        source="[A]",
    )
    common_pause_probability: Array = quantity(
        "1",
        "chance that a pause hits all ranks of an exchange at once in a step",
        bounds=(0, 1),
        default=0,
        source="[A]",
    )
    common_pause_length: Array = quantity(
        "s", "mean length of such a pause", bounds=(0, 100), default=1e-3, source="[A]"
    )
