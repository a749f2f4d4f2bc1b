"""Collectives as published tables show them."""

from fabric_kernels.calls import Call, Network
from fabric_kernels.collective import Collective
from fabric_kernels.collective.calibrated_model import Fabric, calibrated_cost
from fabric_kernels.collective.exchange import Chosen, exchange
from fabric_kernels.collective.library import chosen_by
from fabric_kernels.collective.nccl_model import Cost, Group
from fabric_kernels.inputs import Calibration, Overlap, Reduction, ScaleOut, ScaleUp
from fabric_kernels.operation import Operation
from fabric_kernels.path import Path
from fabric_kernels.workload import Workload


def calibrated(
    operation: Operation,
    workload: Workload,
    overlap: Overlap,
    path: Path,
    scale_up: ScaleUp,
    scale_out: ScaleOut,
    reduction: Reduction,
    calibration: Calibration,
) -> Collective:
    """Time as fitted to published nccl-tests tables of healthy clusters (`calibrated_cost`).

    Latencies, routing and oversubscription of the path are not read: they are in the fit, as they
    were in the machines measured, whose fabrics had full bisection; a constant oversubscription of
    the leaves is refused, that of upper tiers goes unseen.
    Parameters go with the GPU and the fabric, so their presets set them; they hold for the tables'
    range, 2 to some 20 NVLink domains, and beyond it as far as the formula does.
    """

    def cost_of(name: str, group: Group, call: Call) -> Cost:
        fabric = Fabric(call.in_domain * scale_out.link_rate, reduction.nvlink_reduction)
        return calibrated_cost(name, group, fabric, calibration)

    def chosen(call: Call, network: Network) -> Chosen:
        return chosen_by(cost_of, call, network)

    network = Network(path, scale_up, reduction)
    return exchange("calibrated", chosen, operation, workload, overlap, network)


def calibrated_refusal(scale_out: ScaleOut) -> str | None:
    """Why the fit says nothing about this fabric; None where it does."""
    found = float(scale_out.oversubscription)
    if found <= 1.0:
        return None
    return (
        f"oversubscription is {found:g}: `calibrated` is fitted to fabrics without; set it to 1, "
        "or choose another collective."
    )
