"""Congestion: what do queues add?"""

from jax import Array

from fabric_kernels.quantity import quantity, record

REGIMES = (
    "quiet",
    "fixed_point",
    "limit_cycle",
    "sawtooth",
    "underflow",
    "admission_limited",
    "window_controlled",
    "credit_limited",
    "pause_limited",
    "trimming",
)
"""What governs the queue at the fullest link; a buffer that is full comes before the rest."""


@record
class Congestion:
    """What do queues add?"""

    congestion_efficiency: Array = quantity(
        "1", "share of the rate left by congestion control", bounds=(1e-3, 1)
    )
    queueing_delay: Array = quantity(
        "s", "standing queue met by one hop across the fabric", bounds=(0, 1)
    )
    congestion_regime: Array = quantity(
        "1", "what governs the queue at the fullest link", bounds=(0, 9), flags=REGIMES
    )
    marking_probability: Array = quantity(
        "1", "probability that the balance of congestion control marks a packet", bounds=(0, 1)
    )
    standing_queue: Array = quantity("B", "mean queue at the fullest link", bounds=(0, 1e12))
    largest_queue: Array = quantity(
        "B", "top of the queue at the fullest link with room without end", bounds=(0, 1e13)
    )
    needed_buffer: Array = quantity(
        "B", "buffer of one port and priority that loses neither packets nor rate", bounds=(0, 1e13)
    )
    pause_fraction: Array = quantity(
        "1", "share of time that a link into the fullest switch is held", bounds=(0, 1)
    )
    victim_loss: Array = quantity(
        "1", "share of the rate that flows bound for elsewhere lose by it", bounds=(0, 1)
    )
    congestion_loss_rate: Array = quantity(
        "1", "probability that a full queue drops or trims a packet", bounds=(0, 1)
    )
    phase_margin: Array = quantity(
        "1",
        "phase in radians left before the control loop oscillates: pi without a loop, 0 without "
        "a fixed point",
        bounds=(-1e6, 7),
    )
