"""Parameters fitted by kernels/constants/nccl_calibration.py; do not edit."""

SOURCE = "fit of 14 parameters to 18 nccl-tests tables, kernels/constants/nccl_calibration.py [C]"

DEFAULTS = {
    "fabric_efficiency": 0.9291,
    "gather_efficiency": 0.9162,
    "start_latency": 7.672e-06,
    "gather_hop_latency": 2.574e-06,
    "small_message_rate": 2.543e10,
    "chunk_hop_latency": 4.065e-05,
    "chunk_delay_factor": 4.813,
    "domain_fill": 1.096e-05,
    "ring_fill": 9.293e-06,
}
