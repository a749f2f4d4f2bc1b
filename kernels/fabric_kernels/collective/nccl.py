"""NCCL's own cost model, with its choice of algorithm and protocol."""

from fabric_kernels.calls import Call, Network
from fabric_kernels.collective import Collective
from fabric_kernels.collective.exchange import Chosen, exchange
from fabric_kernels.collective.library import chosen_by
from fabric_kernels.collective.nccl_model import Able, Cost, Group, channels_of, cost
from fabric_kernels.inputs import CollectiveLibrary, Overlap, Reduction, ScaleOut, ScaleUp
from fabric_kernels.operation import Operation
from fabric_kernels.path import Path
from fabric_kernels.workload import Workload


def nccl(
    operation: Operation,
    workload: Workload,
    overlap: Overlap,
    path: Path,
    scale_up: ScaleUp,
    scale_out: ScaleOut,
    reduction: Reduction,
    library: CollectiveLibrary,
) -> Collective:
    """Time, algorithm and protocol as NVIDIA's NCCL 2.30 predicts and chooses them (`cost`).

        time = latency + payload / rate,  least over algorithms and protocols

    Its constants stand for hop floors of their own: latencies and routing of the path are not
    read, only how many domains there are and what their ports carry. It knows neither congestion
    nor oversubscription, and gives 0.5 to 0.9 of the bandwidth in published tables: for a forecast
    take `calibrated`, for what the library will choose take this.
    """

    def cost_of(name: str, group: Group, call: Call) -> Cost:
        node_rate = call.in_domain * scale_out.link_rate
        channels = channels_of(library, group, scale_up.nvlink_rate, node_rate)
        able = Able(reduction.nvlink_reduction, reduction.fabric_reduction)
        return cost(name, group, channels, able, library)

    def chosen(call: Call, network: Network) -> Chosen:
        return chosen_by(cost_of, call, network)

    network = Network(path, scale_up, reduction)
    return exchange("nccl", chosen, operation, workload, overlap, network)
