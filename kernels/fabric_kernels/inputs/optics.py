"""Optics of the scale-out network."""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Transceivers:
    """Power of the network's ports, with the optics of one technology."""

    switch_port_power: Array = quantity(
        "W", "power of a switch per port, with its optics, fans and electronics", bounds=(0, 1e3)
    )
    adapter_optics_power: Array = quantity(
        "W", "optics at the GPU's end of its link", bounds=(0, 200)
    )
    switch_ports_per_rack_unit: Array = quantity(
        "1", "ports of a switch per unit of rack height", bounds=(1, 1e3)
    )
    reference_port_power: Array = quantity(
        "W",
        "power of a switch per port in the design that is compared with",
        bounds=(0, 1e3),
        default=7000 / 144,
        source="144 x 800G switch with pluggable DSP optics, 7.0 kW [V]",
    )
    reference_adapter_optics_power: Array = quantity(
        "W",
        "optics at the GPU's end in the design that is compared with",
        bounds=(0, 200),
        default=15,
        source="800G DSP 14-18 W [V]",
    )
