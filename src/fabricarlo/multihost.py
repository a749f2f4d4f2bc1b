"""Devices of several hosts that only work together, such as a TPU pod slice: jax.distributed."""

import os

import jax

from fabricarlo.errors import SpecError


def join_hosts() -> tuple[int, int]:
    """Connect this process with the others of its job; its number, and how many there are.

    On Slurm, Kubernetes, Open MPI and Cloud TPU, JAX finds the others by itself. Elsewhere
    JAX_COORDINATOR_ADDRESS (host:port), JAX_NUM_PROCESSES and JAX_PROCESS_ID say it. Nothing is
    exchanged over this connection: every process computes its own blocks on its own devices. But
    the runtime of such a device starts only when all hosts start it, and ends when one is lost.
    """
    count, number = (_number(k) for k in ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID"))
    try:
        jax.distributed.initialize(num_processes=count, process_id=number)
    except (RuntimeError, ValueError) as error:
        raise SpecError(
            [
                f"--distributed: the processes of this job did not find each other ({error}); set "
                "JAX_COORDINATOR_ADDRESS (host:port), JAX_NUM_PROCESSES and JAX_PROCESS_ID in "
                "each, or leave --distributed out where every process has devices of its own."
            ]
        ) from error
    return jax.process_index(), jax.process_count()


def _number(name: str) -> int | None:
    text = os.environ.get(name)
    if text is None:
        return None
    if not text.isdecimal():
        raise SpecError([f"--distributed: {name} is '{text}'; it must be a whole number."])
    return int(text)
