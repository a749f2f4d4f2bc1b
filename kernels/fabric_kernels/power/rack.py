"""A rack of GPUs in compute."""

from fabric_kernels.cooling import Cooling
from fabric_kernels.inputs import Rack
from fabric_kernels.power import Power


def rack(cooling: Cooling, rack: Rack) -> Power:
    """Power of one rack whose GPUs all are the nominal GPU.

        rack_power = gpus_per_rack (gpu_power + other_power)

    A sum by definition. The mean over a rack's own GPUs differs from the median by about half
    their variance; conversion losses before the rack are not in it. A rack beyond what its cooling
    is built for (air: 35-40 kW) is flagged, not refused: the clock says what it costs.
    """
    power = rack.gpus_per_rack * (cooling.gpu_power + rack.other_power)
    beyond = power > rack.rack_power_limit
    return Power(rack_power=power, rack_density=beyond.astype(power.dtype))
