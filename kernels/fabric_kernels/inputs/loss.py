"""How errors come, and what the transport does about lost packets."""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class BitErrors:
    """Errors of a link before forward error correction."""

    bit_error_rate: Array = quantity(
        "1",
        "bit error rate of an ordinary link before forward error correction",
        bounds=(0, 5e-3),
        default=1e-6,
        source="healthy optics 1e-8 to 1e-5 [A]; limit of KP4 2.4e-4, IEEE 802.3",
    )
    marginal_bit_error_rate: Array = quantity(
        "1",
        "bit error rate of a marginal link before forward error correction",
        bounds=(0, 5e-3),
        default=2.4e-4,
        source="limit of KP4, IEEE 802.3 [A]",
    )
    frame_codewords: Array = quantity(
        "1",
        "codewords that one frame touches",
        bounds=(1, 1e3),
        default=8,
        source="a 4200 B frame over 5440-bit codewords [C]",
    )


@record
class MarginalLinks:
    """Links near the edge of what error correction repairs: most of a cluster's are not."""

    marginal_link_share: Array = quantity(
        "1", "share of the links that are marginal", bounds=(0, 0.5), default=0, source="[A]"
    )
    marginal_packet_loss_rate: Array = quantity(
        "1",
        "probability that a packet is lost on its way over a marginal link",
        bounds=(0, 0.1),
        default=1e-6,
        source="8 codewords a frame at a bit error rate of 5e-4 lose 2.2e-7 [A]",
    )


@record
class LossBursts:
    """Losses that come together: a two-state (Gilbert-Elliott) channel, good state without loss."""

    loss_burst_length: Array = quantity(
        "1",
        "packets for which a burst of losses lasts on average (1 = losses are independent)",
        bounds=(1, 1e6),
        default=1,
        source="independent losses [A]",
    )
    loss_burst_severity: Array = quantity(
        "1",
        "probability that a packet sent in a burst is lost",
        bounds=(0.01, 1),
        default=1,
        source="[A]",
    )


@record
class Transport:
    """The flow between two neighbours: its window and how many share a message."""

    send_window: Array = quantity(
        "B",
        "most bytes of a flow on their way at once",
        bounds=(64, 1e12),
        default=2**23,
        source="two bandwidth-delay products of 800 Gbit/s at 42 us [C]",
    )
    channels: Array = quantity(
        "1",
        "flows that carry a message side by side, a share each",
        bounds=(1, 1024),
        default=1,
        source="one flow for a pair and port; NCCL opens 1 to 4 [A]",
        integer=True,
    )
