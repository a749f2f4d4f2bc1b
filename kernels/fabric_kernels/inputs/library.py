"""The collective library: what NCCL's cost model and the calibrated one are told."""

from jax import Array

from fabric_kernels.inputs.calibration_values import DEFAULTS, SOURCE
from fabric_kernels.quantity import quantity, record

GENERATIONS = ("volta", "ampere", "hopper", "blackwell")
PROCESSORS = ("intel", "amd", "arm")
_TUNING = "NCCL v2.30.7, src/graph/tuning.cc [M]"
_TOPOLOGY = "NCCL v2.30.7, src/graph/topo.h"


@record
class CollectiveLibrary:
    """What NCCL finds out about its machine, and which rules it follows."""

    gpu_generation: Array = quantity(
        "1", "generation of the GPU", bounds=(0, len(GENERATIONS) - 1), flags=GENERATIONS
    )
    host_processor: Array = quantity(
        "1",
        "processor of the host: NCCL has other limits of LL for AMD",
        bounds=(0, len(PROCESSORS) - 1),
        default=0,
        source="most published logs [A]",
        flags=PROCESSORS,
    )
    library_channels: Array = quantity(
        "1",
        "channels, each a ring or tree of its own",
        bounds=(1, 64),
        default=16,
        source="log of 24 H100 in NVIDIA/nccl issue 1453 [M]",
        integer=True,
    )
    library_nvlink_share: Array = quantity(
        "1",
        "share of the NVLink rate that the library counts on",
        bounds=(0.01, 1),
        default=0.82,
        source=f"{_TOPOLOGY}: 20 of 25, 20.6 of 25, 40.1 of 50 GB/s a link since Ampere [C]",
    )
    library_network_share: Array = quantity(
        "1",
        "share of a port's line rate that the library counts on",
        bounds=(0.01, 1),
        default=0.96,
        source=f"{_TOPOLOGY}: 12 of 12.5 GB/s for 100 Gbit/s [C]",
    )
    network_overhead: Array = quantity(
        "s",
        "time to post a message to the network; NCCL has 2 us on AMD hosts",
        bounds=(0, 1e-3),
        default=1e-6,
        source=_TUNING,
    )
    network_plugin_latency: Array = quantity(
        "s",
        "latency that the network plugin reports",
        bounds=(0, 1e-2),
        default=0,
        source="NCCL's own InfiniBand and socket plugins report none [M]",
    )
    ring_step_rule: Array = quantity(
        "1",
        "how many steps of a ring cross the network: 2 (N - 1) since NCCL 2.23.4, 2 N before",
        bounds=(0, 1),
        default=0,
        source=_TUNING,
        flags=("since_2_23_4", "before_2_23_4"),
    )
    scale_up_link: Array = quantity(
        "1",
        "link between the GPUs of a node",
        bounds=(0, 1),
        default=0,
        source="every GPU of the presets [V]",
        flags=("nvlink", "pcie"),
    )
    tree_pattern: Array = quantity(
        "1",
        "shape of the trees inside a node: NCCL takes 0.85 off plain ones",
        bounds=(0, 1),
        default=0,
        source="NCCL tries balanced trees first [M]",
        flags=("balanced", "plain"),
    )


@record
class Calibration:
    """Parameters of the answer `calibrated`: by GPU generation, by fabric, and shared by all."""

    ring_rate: Array = quantity(
        "B s-1", "bus bandwidth of a ring inside one domain", bounds=(1e8, 1e14)
    )
    reduction_rate: Array = quantity(
        "B s-1",
        "all-reduce rate (payload over time) of one domain by its switches or trees",
        bounds=(1e8, 1e14),
    )
    fabric_delay: Array = quantity(
        "s",
        "what a hop of this fabric takes beyond one of InfiniBand or RoCE",
        bounds=(0, 1e-2),
        default=0,
        source="InfiniBand and RoCE by definition [C]",
    )
    fabric_efficiency: Array = quantity(
        "1",
        "share of the line rate that large messages reach",
        bounds=(0.05, 1),
        default=DEFAULTS["fabric_efficiency"],
        source=SOURCE,
    )
    gather_efficiency: Array = quantity(
        "1",
        "the same of all-gather and reduce-scatter over that of all-reduce",
        bounds=(0.05, 1),
        default=DEFAULTS["gather_efficiency"],
        source=SOURCE,
    )
    start_latency: Array = quantity(
        "s",
        "what a small message across domains takes beside NCCL's latency of LL",
        bounds=(0, 1e-2),
        default=DEFAULTS["start_latency"],
        source=SOURCE,
    )
    gather_hop_latency: Array = quantity(
        "s",
        "hop of a small all-gather inside a domain, one of several",
        bounds=(0, 1e-3),
        default=DEFAULTS["gather_hop_latency"],
        source=SOURCE,
    )
    small_message_rate: Array = quantity(
        "B s-1",
        "payload of small messages over their time beside the latency, for each of two phases of "
        "an all-reduce",
        bounds=(1e7, 1e13),
        default=DEFAULTS["small_message_rate"],
        source=SOURCE,
    )
    chunk_hop_latency: Array = quantity(
        "s",
        "hop of a chunk of a large message across the fabric",
        bounds=(0, 1e-2),
        default=DEFAULTS["chunk_hop_latency"],
        source=SOURCE,
    )
    chunk_delay_factor: Array = quantity(
        "1",
        "fabric_delay counts so often for a chunk of a large message",
        bounds=(0, 100),
        default=DEFAULTS["chunk_delay_factor"],
        source=SOURCE,
    )
    domain_fill: Array = quantity(
        "s",
        "time to fill the pipeline inside a domain, for each of its ranks and each direction",
        bounds=(0, 1e-3),
        default=DEFAULTS["domain_fill"],
        source=SOURCE,
    )
    ring_fill: Array = quantity(
        "s",
        "time to fill a ring, for each of its ranks",
        bounds=(0, 1e-3),
        default=DEFAULTS["ring_fill"],
        source=SOURCE,
    )
