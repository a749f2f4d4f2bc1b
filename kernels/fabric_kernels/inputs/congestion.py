"""What makes queues, and how senders, switches and links react to them."""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Contention:
    """Who shares the fullest link of the way, and the room before it."""

    background_flows: Array = quantity(
        "1",
        "flows of other jobs and exchanges on the fullest link on the way of a message",
        bounds=(0, 1e5),
        default=0,
        source="the job has the fabric for itself [A]",
    )
    concurrent_peers: Array = quantity(
        "1",
        "ranks that send to one rank at once in an all-to-all",
        bounds=(1, 1e5),
        default=8,
        source="[A]",
    )
    port_buffer: Array = quantity(
        "B",
        "buffer that one port and priority may fill before the link is paused or packets are cut",
        bounds=(64, 1e10),
        default=16e6,
        source="a tenth of the 165 MB shared by a 51.2 Tbit/s switch [A]",
    )
    victim_share: Array = quantity(
        "1",
        "share of the traffic on a paused link that is bound for somewhere else",
        bounds=(0, 1),
        default=0.1,
        source="[A]",
    )


@record
class MarkingCurve:
    """At which queues a switch marks packets (RED). A queue is given as the time to drain it.

    So the thresholds grow with the link rate, as in the configurations of HPCC (400 and 1600 kB at
    100G: 32 and 128 us) and SimAI (800 and 3200 kB at 400G: 16 and 64 us). Zhu et al., SIGCOMM'15,
    at 40G: 5 and 200 kB, 1 and 40 us, and 1 %.
    """

    marking_start_time: Array = quantity(
        "s",
        "queue up to which nothing is marked, as time to drain it",
        bounds=(1e-8, 1e-2),
        default=16e-6,
        source="800 kB at 400G, SimAI.conf [M]; 16 to 32 us",
    )
    marking_end_time: Array = quantity(
        "s",
        "queue beyond which everything is marked, as time to drain it",
        bounds=(1e-8, 1e-2),
        default=64e-6,
        source="3200 kB at 400G, SimAI.conf [M]; 40 to 128 us",
    )
    largest_marking: Array = quantity(
        "1",
        "marking probability just below the end of the curve",
        bounds=(1e-6, 1),
        default=0.2,
        source="HPCC and SimAI configurations [M]; 0.01 in SIGCOMM'15",
    )


@record
class RateReaction:
    """How a DCQCN sender reacts to congestion notifications."""

    alpha_gain: Array = quantity(
        "1",
        "weight of one alpha timer in the mean of marks",
        bounds=(1e-4, 1),
        default=1 / 256,
        source="Zhu et al. SIGCOMM'15 [M]",
    )
    notification_interval: Array = quantity(
        "s",
        "least time between two notifications to one flow",
        bounds=(1e-6, 1e-3),
        default=50e-6,
        source="Zhu et al. SIGCOMM'15 [M]; 4 us in SimAI.conf",
    )
    alpha_timer: Array = quantity(
        "s",
        "time without notification after which alpha falls",
        bounds=(1e-6, 1e-2),
        default=55e-6,
        source="Zhu et al. CoNEXT'16 [M]; 1 us in SimAI.conf",
    )
    increase_timer: Array = quantity(
        "s",
        "timer of the rate increase",
        bounds=(1e-6, 1e-2),
        default=55e-6,
        source="Zhu et al. SIGCOMM'15 [M]; 900 us in SimAI.conf",
    )
    byte_counter: Array = quantity(
        "B",
        "bytes sent between two rate increases",
        bounds=(1e5, 1e10),
        default=1e7,
        source="Zhu et al. SIGCOMM'15 [M]",
    )
    recovery_steps: Array = quantity(
        "1",
        "increases that only halve the way back to the target rate",
        bounds=(1, 20),
        default=5,
        source="Zhu et al. SIGCOMM'15 [M]; 1 in SimAI.conf",
    )
    additive_increase: Array = quantity(
        "B s-1",
        "step of the target rate afterwards",
        bounds=(1e3, 1e10),
        default=5e6,
        source="40 Mbit/s, Zhu et al. SIGCOMM'15 [M]; 50 Mbit/s in SimAI.conf",
    )


@record
class WindowReaction:
    """How DCTCP marks and reacts."""

    marking_threshold_time: Array = quantity(
        "s",
        "queue beyond which every packet is marked, as time to drain it",
        bounds=(1e-8, 1e-2),
        default=4e-6,
        source="above a seventh of a round trip of 28 us, SIGCOMM'10 [C]; 1 to 80 us",
    )
    window_gain: Array = quantity(
        "1",
        "weight of one window in the mean of marks",
        bounds=(1e-4, 1),
        default=1 / 16,
        source="RFC 8257 [M]",
    )


@record
class PauseControl:
    """Priority flow control, and how much a receiver admits."""

    pause_response: Array = quantity(
        "s",
        "time from a pause frame to the last bit that still comes, beside the cable",
        bounds=(0, 1e-3),
        default=1e-6,
        source="[A]",
    )
    admission_window: Array = quantity(
        "B",
        "bytes of one port that a receiver lets come at once",
        bounds=(64, 1e10),
        default=2e6,
        source="above rate times round trip at 800G; chunks of NCCL are 0.5 to 4 MiB [A]",
    )


@record
class LinkCredits:
    """Flow control of InfiniBand: a sender stops without credit, and nothing is dropped."""

    lane_buffer: Array = quantity(
        "B",
        "receive buffer of one virtual lane",
        bounds=(64, 1e10),
        default=128e3,
        source="limit of a 12-bit counter of 64-byte units in half its range [A]; 32 to 256 kB",
    )
    virtual_lanes: Array = quantity(
        "1",
        "data lanes over which flows are spread",
        bounds=(1, 16),
        default=1,
        source="one service level [A]",
    )
    credit_turnaround: Array = quantity(
        "s",
        "time from a packet's arrival to its credit at one end",
        bounds=(0, 1e-3),
        default=200e-9,
        source="[A]",
    )
    hot_share: Array = quantity(
        "1",
        "share of the packets of a lane that wait for a saturated output",
        bounds=(0, 1),
        default=0.02,
        source="[A]",
    )


@record
class SprayTransport:
    """Transports that spray packets, control windows and have full queues trim (UEC, MRC)."""

    initial_window: Array = quantity(
        "1",
        "bytes that a flow sends before it hears anything, over rate times round trip",
        bounds=(1e-3, 100),
        default=1,
        source="one bandwidth-delay product, UEC [A]",
    )
    unsolicited_share: Array = quantity(
        "1",
        "share of all bytes that are sent before anything is heard",
        bounds=(0, 1),
        default=0.02,
        source="[A]",
    )
    target_queue_time: Array = quantity(
        "s",
        "standing queue that the window control aims at, as time to drain it",
        bounds=(0, 1e-2),
        default=4e-6,
        source="about half a round trip [A]",
    )
    trimmed_packet: Array = quantity(
        "B",
        "size of a packet whose payload was cut off",
        bounds=(1, 9000),
        default=64,
        source="headers only [A]",
    )
