"""What a sweep may vary: records that no stage produces.

Evidence marks in a source: [M] measured or tool output, [V] vendor claim, [S] secondary page,
[C] computed here, [A] assumption.
"""

from fabric_kernels.inputs.chip import Gpu, Population
from fabric_kernels.inputs.job import Job
from fabric_kernels.inputs.network import LinkRetry, LossProcess, Retransmission, ScaleOut, ScaleUp
from fabric_kernels.inputs.rack import AirRack, LiquidLoop, Rack

__all__ = [
    "AirRack",
    "Gpu",
    "Job",
    "LinkRetry",
    "LiquidLoop",
    "LossProcess",
    "Population",
    "Rack",
    "Retransmission",
    "ScaleOut",
    "ScaleUp",
]
