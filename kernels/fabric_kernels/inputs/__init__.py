"""What a sweep may vary: records that no stage produces.

Evidence marks in a source: [M] measured or tool output, [V] vendor claim, [S] secondary page,
[C] computed here, [A] assumption.
"""

from fabric_kernels.inputs.chip import Gpu, OffCompute, Population
from fabric_kernels.inputs.collectives import Reduction
from fabric_kernels.inputs.congestion import (
    Contention,
    LinkCredits,
    MarkingCurve,
    PauseControl,
    RateReaction,
    SprayTransport,
    WindowReaction,
)
from fabric_kernels.inputs.job import Experts, Job, Overlap, Transformer
from fabric_kernels.inputs.library import Calibration, CollectiveLibrary
from fabric_kernels.inputs.loss import BitErrors, LossBursts, MarginalLinks, Transport
from fabric_kernels.inputs.network import LinkRetry, LossProcess, Retransmission, ScaleOut, ScaleUp
from fabric_kernels.inputs.noise import HopConditions
from fabric_kernels.inputs.optics import Transceivers
from fabric_kernels.inputs.rack import AirRack, LiquidLoop, Rack, TwoPhaseLoop
from fabric_kernels.inputs.site import Climate, Plant
from fabric_kernels.inputs.topology import Flows, Planes, Spraying, UpperTiers
from fabric_kernels.inputs.transient import PowerCycle, Pumps, ThermalMass

__all__ = [
    "AirRack",
    "BitErrors",
    "Calibration",
    "Climate",
    "CollectiveLibrary",
    "Contention",
    "Experts",
    "Flows",
    "Gpu",
    "HopConditions",
    "Job",
    "LinkCredits",
    "LinkRetry",
    "LiquidLoop",
    "LossBursts",
    "LossProcess",
    "MarginalLinks",
    "MarkingCurve",
    "OffCompute",
    "Overlap",
    "PauseControl",
    "Planes",
    "Plant",
    "Population",
    "PowerCycle",
    "Pumps",
    "Rack",
    "RateReaction",
    "Reduction",
    "Retransmission",
    "ScaleOut",
    "ScaleUp",
    "SprayTransport",
    "Spraying",
    "ThermalMass",
    "Transceivers",
    "Transformer",
    "Transport",
    "TwoPhaseLoop",
    "UpperTiers",
    "WindowReaction",
]
