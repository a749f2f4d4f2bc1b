"""The two networks of a GPU, and how lost packets are repaired."""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class ScaleUp:
    """The NVLink domain: the fast network inside a node or rack."""

    nvlink_domain: Array = quantity(
        "1", "GPUs in one NVLink domain", bounds=(1, 1024), integer=True
    )
    nvlink_rate: Array = quantity(
        "B s-1", "rate of one GPU into its NVLink domain, one direction", bounds=(1e6, 1e14)
    )
    nvlink_latency: Array = quantity(
        "s", "one hop inside the NVLink domain", bounds=(0, 1e-2), default=1e-6, source="[A]"
    )


@record
class ScaleOut:
    """The network between NVLink domains: ports, switches and cables."""

    link_rate: Array = quantity("B s-1", "line rate of one GPU's network port", bounds=(1e6, 1e13))
    payload_fraction: Array = quantity(
        "1",
        "share of the line rate that carries payload",
        bounds=(0.01, 1),
        default=0.95,
        source="46-48 of 50 GB/s per 400G port as used by NCCL's maintainers [M]",
    )
    oversubscription: Array = quantity(
        "1",
        "ratio of leaf downlink to uplink capacity (1 = none)",
        bounds=(1, 100),
        default=1,
        source="[A]",
    )
    routing_efficiency: Array = quantity(
        "1",
        "share of the path's capacity left by ECMP collisions or adaptive routing",
        bounds=(0.01, 1),
        default=0.95,
        source="adaptive routing 0.95-0.98 [V]",
    )
    switch_latency: Array = quantity("s", "port to port, empty queues", bounds=(0, 1e-2))
    adapter_latency: Array = quantity(
        "s", "both network adapters of one message", bounds=(0, 1e-2), default=1.5e-6, source="[A]"
    )
    error_correction_latency: Array = quantity(
        "s",
        "forward error correction of one link",
        bounds=(0, 1e-3),
        default=120e-9,
        source="KP4: 26-51 ns accumulation [C], 50-100 ns decoding [A]",
    )
    cable_length: Array = quantity(
        "m", "mean length of one link", bounds=(0, 1e5), default=30, source="[A]"
    )
    switch_radix: Array = quantity(
        "1",
        "ports of one switch at the link rate",
        bounds=(2, 4096),
        default=64,
        source="64 x 800G [V]",
        integer=True,
    )
    packet_payload: Array = quantity(
        "B",
        "payload of one packet",
        bounds=(64, 65536),
        default=4096,
        source="RoCE and InfiniBand MTU [A]",
    )


@record
class LossProcess:
    """How packets go missing."""

    packet_loss_rate: Array = quantity(
        "1", "probability that a packet is lost on its way", bounds=(0, 0.1)
    )


@record
class Retransmission:
    """End-to-end recovery by the network adapter."""

    retransmission_timeout: Array = quantity(
        "s",
        "time after which an unanswered message is sent again",
        bounds=(1e-7, 100),
        default=4.294967296,
        source="4.096 us x 2^20, NCCL_IB_TIMEOUT default 20 [M]",
    )


@record
class LinkRetry:
    """Recovery on the link itself, by the port."""

    link_turnaround: Array = quantity(
        "s",
        "turnaround of both ends of a link when a frame is repeated",
        bounds=(0, 1e-3),
        default=400e-9,
        source="200 ns an end [A]",
    )
