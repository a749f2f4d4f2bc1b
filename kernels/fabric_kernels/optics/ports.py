"""The network's power, port by port."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.cooling import Cooling
from fabric_kernels.inputs import Job, Rack, ScaleOut, Transceivers
from fabric_kernels.optics import Optics
from fabric_kernels.path import Path

_NOTHING = 1e-3  # W: a cluster that draws less draws nothing


def ports(
    job: Job,
    scale_out: ScaleOut,
    path: Path,
    cooling: Cooling,
    rack: Rack,
    transceivers: Transceivers,
) -> Optics:
    """Pluggable DSP or LPO optics or co-packaged ones, by the power of their ports.

        network_power = switches radix P_port + gpus P_adapter
        share = network_power / (network_power + gpus (mean GPU power + other_power))
        gpus_at_same_power = gpus (P_gpu + P_network,compared) / (P_gpu + P_network), per GPU

    Vendors give whole switches (144 x 800G: 7.0 kW pluggable, 3.95 kW co-packaged) and ports (30
    and 9 W at 1.6T); the two disagree by a factor of two per port, fans and electronics in between.
    Adapter ends stay pluggable unless their power is set lower. The count at the same power keeps
    the network's share per GPU, right within a tier.
    """
    of_switches = path.network_switches * scale_out.switch_radix
    network = network_power(
        of_switches, transceivers.switch_port_power, job.gpus, transceivers.adapter_optics_power
    )
    compared = network_power(
        of_switches,
        transceivers.reference_port_power,
        job.gpus,
        transceivers.reference_adapter_optics_power,
    )
    compute = job.gpus * (cooling.mean_gpu_power + rack.other_power)
    total = jnp.maximum(network + compute, _NOTHING)
    return Optics(
        network_power=network,
        network_power_share=network / total,
        # not a difference of totals, which cancels
        network_power_saving=network_power(
            of_switches,
            transceivers.reference_port_power - transceivers.switch_port_power,
            job.gpus,
            transceivers.reference_adapter_optics_power - transceivers.adapter_optics_power,
        ),
        gpus_at_same_power=job.gpus * ((compute + compared) / total),
        network_rack_units=of_switches / transceivers.switch_ports_per_rack_unit,
    )


def network_power(
    switch_ports: Array, port_power: Array, gpus: Array, adapter_power: Array
) -> Array:
    """Power (W) of all ports of all switches and of the optics of the GPUs' ports."""
    return switch_ports * port_power + gpus * adapter_power


def fat_tree_switches(gpus: Array, tiers: Array, radix: Array) -> Array:
    """Switches of a fat tree without oversubscription: N (2 L - 1) / k, not rounded.

    Al-Fares, Loukissas, Vahdat, SIGCOMM'08: every tier but the top faces both ways.
    """
    return gpus * (2.0 * tiers - 1.0) / radix
