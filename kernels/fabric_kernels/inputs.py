"""What a sweep may vary: records that no stage produces.

Evidence marks in a source: [M] measured or tool output, [V] vendor claim, [S] secondary page,
[C] computed here, [A] assumption.
"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Job:
    """The training job: what is trained, and how it is split over the GPUs."""

    gpus: Array = quantity("1", "GPUs in the job", bounds=(1, 2**20), integer=True)
    parameters: Array = quantity("1", "parameters of the dense model", bounds=(1, 1e15))
    gradient_element_size: Array = quantity(
        "B", "bytes of one gradient element", bounds=(0.5, 8), default=2, source="BF16 [A]"
    )
    sequence_length: Array = quantity(
        "1", "tokens in one sequence", bounds=(1, 1e7), default=8192, source="Llama 3 405B [S]"
    )
    microbatch_size: Array = quantity(
        "1", "sequences in one microbatch", bounds=(1, 1e5), default=1, source="[A]"
    )
    microbatches: Array = quantity(
        "1",
        "microbatches of one step and data-parallel rank",
        bounds=(1, 1e6),
        default=16,
        source="[A]",
    )
    tensor_parallel: Array = quantity(
        "1", "GPUs that share each layer", bounds=(1, 4096), default=8, source="[A]", integer=True
    )
    pipeline_parallel: Array = quantity(
        "1", "pipeline stages", bounds=(1, 4096), default=8, source="[A]", integer=True
    )
    interleave: Array = quantity(
        "1",
        "model chunks per pipeline stage (1 = plain 1F1B)",
        bounds=(1, 128),
        default=1,
        source="[A]",
    )
    compute_efficiency: Array = quantity(
        "1",
        "share of the peak rate reached in compute",
        bounds=(1e-3, 1),
        default=0.5,
        source="[A]",
    )
    compute_bound_share: Array = quantity(
        "1",
        "share of compute time that scales with the inverse of the clock",
        bounds=(0, 1),
        default=0.85,
        source="[A]",
    )


@record
class Gpu:
    """One GPU: its speed, its power law and its temperature limits."""

    peak_flops: Array = quantity(
        "s-1", "dense peak of the precision at full clock", bounds=(1e9, 1e18)
    )
    thermal_design_power: Array = quantity("W", "thermal design power of one GPU", bounds=(10, 1e4))
    power_cap: Array = quantity("W", "power limit that the clock governor holds", bounds=(10, 1e4))
    junction_temperature_limit: Array = quantity(
        "degC",
        "junction temperature at which the clock governor slows down",
        bounds=(40, 150),
        default=87,
        source="H100 driver output [M]; Blackwell [A]",
    )
    shutdown_temperature: Array = quantity(
        "degC",
        "junction temperature at which the GPU shuts down",
        bounds=(40, 200),
        default=95,
        source="H100 driver output [M]; Blackwell [A]",
    )
    idle_power_share: Array = quantity(
        "1", "idle power as a share of TDP", bounds=(0, 1), default=0.07, source="H100 idle [M]"
    )
    memory_power_share: Array = quantity(
        "1", "memory power at full use as a share of TDP", bounds=(0, 1), default=0.08, source="[A]"
    )
    memory_activity: Array = quantity(
        "1", "share of full use of the memory", bounds=(0, 1), default=1, source="[A]"
    )
    leakage_share: Array = quantity(
        "1",
        "leakage at the reference temperature and full voltage as a share of TDP",
        bounds=(0, 1),
        default=0.10,
        source="bounded by the H100 idle dump [A]",
    )
    leakage_reference_temperature: Array = quantity(
        "degC",
        "temperature at which the leakage share holds",
        bounds=(0, 150),
        default=65,
        source="[A]",
    )
    leakage_temperature_coefficient: Array = quantity(
        "K-1", "relative growth of leakage per kelvin", bounds=(0, 0.1), default=0.020, source="[A]"
    )
    dynamic_power_share: Array = quantity(
        "1",
        "dynamic power at full clock and activity 1 as a share of TDP",
        bounds=(0, 2),
        default=0.85,
        source="[A]",
    )
    activity: Array = quantity(
        "1",
        "switching activity of the workload (1 = dense GEMM)",
        bounds=(0.01, 2),
        default=1,
        source="[A]",
    )
    minimum_voltage_fraction: Array = quantity(
        "1", "voltage floor as a share of full voltage", bounds=(0.1, 1), default=0.72, source="[A]"
    )
    voltage_slope: Array = quantity(
        "1",
        "relative voltage change per relative clock change",
        bounds=(0, 1),
        default=0.80,
        source="between two measured exponents [A]",
    )
    minimum_clock_fraction: Array = quantity(
        "1",
        "lowest clock of the governor as a share of full clock",
        bounds=(0.01, 1),
        default=0.20,
        source="[A]",
    )


@record
class Population:
    """How much the GPUs of one cluster differ from each other (standard deviations)."""

    resistance_spread: Array = quantity(
        "1",
        "deviation of the log of a part's thermal resistance",
        bounds=(0, 0.5),
        default=0.08,
        source="total anchored on Sinha et al. SC'22, split [A]",
    )
    leakage_spread: Array = quantity(
        "1", "deviation of the log of a part's leakage", bounds=(0, 1), default=0.20, source="[A]"
    )
    dynamic_power_spread: Array = quantity(
        "1",
        "relative deviation of a part's dynamic power",
        bounds=(0, 0.3),
        default=0.03,
        source="[A]",
    )
    inlet_temperature_spread: Array = quantity(
        "K",
        "deviation of the inlet temperature between GPUs",
        bounds=(0, 20),
        default=1.0,
        source="[A]",
    )
    flow_spread: Array = quantity(
        "1",
        "deviation of the log of a GPU's coolant flow",
        bounds=(0, 0.5),
        default=0.07,
        source="[A]",
    )


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


@record
class Rack:
    """What is in a rack besides the GPUs' own chips."""

    gpus_per_rack: Array = quantity("1", "GPUs in one rack", bounds=(1, 1024), integer=True)
    other_power: Array = quantity(
        "W", "power per GPU of everything else in the rack", bounds=(0, 1e4)
    )


@record
class LiquidLoop:
    """A single-phase cold-plate loop, per GPU."""

    coolant_supply_temperature: Array = quantity(
        "degC", "temperature of the coolant that enters the cold plate", bounds=(0, 70)
    )
    coolant_flow: Array = quantity(
        "m3 s-1", "coolant flow through one GPU's cold plate", bounds=(1e-7, 1e-3)
    )
    coolant_heat_capacity: Array = quantity(
        "J m-3 K-1",
        "volumetric heat capacity of the coolant",
        bounds=(1e5, 1e7),
        default=1007.2 * 3980.6,
        source="PG25 at 45 degC, 1007.2 kg m-3 and 3980.6 J kg-1 K-1, CoolProp [C]",
    )
    package_resistance: Array = quantity(
        "K W-1", "junction to lid", bounds=(0, 1), default=0.008, source="plate spec and CFD [S]"
    )
    interface_resistance: Array = quantity(
        "K W-1",
        "lid to cold plate (thermal interface material)",
        bounds=(0, 1),
        default=0.007,
        source="plate spec and CFD [S]",
    )
    plate_resistance: Array = quantity(
        "K W-1",
        "cold plate at the reference flow",
        bounds=(1e-6, 1),
        default=0.012,
        source="plate spec and CFD [S]",
    )
    plate_reference_flow: Array = quantity(
        "m3 s-1",
        "flow at which the plate resistance holds",
        bounds=(1e-7, 1e-3),
        default=2.5e-5,
        source="1.5 L min-1 [S]",
    )
    plate_flow_exponent: Array = quantity(
        "1", "fall of plate resistance with flow", bounds=(0, 1), default=0.5, source="0.33-0.8 [A]"
    )


@record
class AirRack:
    """An air-cooled rack at its airflow ceiling."""

    air_supply_temperature: Array = quantity(
        "degC", "temperature of the air that enters the rack", bounds=(0, 60)
    )
    rack_airflow: Array = quantity(
        "m3 s-1",
        "largest airflow through one rack",
        bounds=(0.01, 50),
        default=1.678172,
        source="3556 CFM: 40 kW at 20 K [C]",
    )
    air_heat_capacity: Array = quantity(
        "J m-3 K-1",
        "volumetric heat capacity of the air",
        bounds=(500, 2000),
        default=1191.772933,
        source="sea level, 20 degC [C]",
    )
    heatsink_resistance: Array = quantity(
        "K W-1",
        "junction to air at the nominal density",
        bounds=(1e-4, 2),
        default=0.045,
        source="derived from H100 air 0.058 K W-1 [A]",
    )
    nominal_gpus_per_rack: Array = quantity(
        "1",
        "GPUs per rack at which the heatsink resistance holds",
        bounds=(1, 1024),
        default=32,
        source="[A]",
    )
    heatsink_density_exponent: Array = quantity(
        "1",
        "growth of heatsink resistance with GPUs per rack",
        bounds=(0, 2),
        default=0.6,
        source="[A]",
    )
    preheat_share: Array = quantity(
        "1",
        "share of the rack's heat that has warmed the air before a GPU",
        bounds=(0, 1),
        default=0.4,
        source="[A]",
    )
