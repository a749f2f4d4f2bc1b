"""Step: what does the training job finally see?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Step:
    """What does the training job finally see?"""

    compute_time: Array = quantity("s", "compute of the slowest GPU", bounds=(0, 1e7))
    bubble: Array = quantity("s", "pipeline bubble at the slowest GPU", bounds=(0, 1e7))
    exposed_communication_time: Array = quantity(
        "s", "exchange that compute does not hide", bounds=(0, 1e7)
    )
    step_time: Array = quantity("s", "one synchronous training step", bounds=(0, 1e7))
    step_time_compute: Array = quantity(
        "s", "part of the step time: compute at full clock", bounds=(0, 1e7)
    )
    step_time_pipeline: Array = quantity(
        "s", "part of the step time: pipeline bubble at full clock", bounds=(0, 1e7)
    )
    step_time_bandwidth: Array = quantity(
        "s", "part of the step time: transfer without congestion", bounds=(0, 1e7)
    )
    step_time_latency: Array = quantity("s", "part of the step time: hop floors", bounds=(0, 1e7))
    step_time_thermal: Array = quantity(
        "s",
        "part of the step time: the slowest GPU below full clock, by power cap or heat",
        bounds=(0, 1e7),
    )
    step_time_congestion: Array = quantity(
        "s", "part of the step time: queues and lost rate", bounds=(0, 1e7)
    )
    step_time_jitter: Array = quantity("s", "part of the step time: hop noise", bounds=(0, 1e7))
    step_time_loss: Array = quantity("s", "part of the step time: lost packets", bounds=(0, 1e7))
    scaling_efficiency: Array = quantity("1", "compute at full clock over step time", bounds=(0, 1))
    model_flop_utilisation: Array = quantity(
        "1", "6 x parameters x tokens over what the GPUs could do at peak in a step", bounds=(0, 1)
    )
    tokens_per_second: Array = quantity("s-1", "tokens trained per second", bounds=(0, 1e15))
