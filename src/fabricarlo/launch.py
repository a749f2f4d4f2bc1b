"""A sweep on many machines: the script or manifest that a scheduler starts its processes with."""

import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from fabricarlo.errors import FabricarloError
from fabricarlo.manifests import Place, manifest
from fabricarlo.objects import is_url
from fabricarlo.spec import load_spec
from fabricarlo.sweep import Sweep

SCHEDULERS = ("slurm", "kubernetes", "tpu")
RESTARTS = 100  # of a job whose time ran out, again and again
WARNING = 120  # s before its time runs out that a job is told: time to finish a block


@dataclasses.dataclass(frozen=True)
class Job:
    """What is to run, and on how much."""

    sweep: Sweep
    spec: Path
    store: str
    nodes: int
    gpus_per_node: int = 0
    array: bool = False  # a job of its own for every node
    process_per_node: bool = False  # one process for all GPUs of a node, instead of one for each
    overrides: tuple[str, ...] = ()
    options: tuple[str, ...] = ()  # further options of sbatch, as key=value or key

    @classmethod
    def of(
        cls,
        spec: Path,
        store: str,
        nodes: int,
        gpus_per_node: int,
        process_per_node: bool,  # noqa: FBT001 - as the field says
        *,
        array: bool,
        overrides: tuple[str, ...],
        options: tuple[str, ...],
    ) -> "Job":
        """A job of the sweep in a file. Raises SpecError for a wrong one, before it is queued."""
        sweep = load_spec(spec, overrides)
        place = store if is_url(store) else str(Path(store).absolute())
        numbers = (nodes, gpus_per_node, array, process_per_node)
        return cls(sweep, spec.absolute(), place, *numbers, overrides, options)

    @property
    def tasks_per_node(self) -> int:
        """Processes on a node."""
        return 1 if self.process_per_node else max(1, self.gpus_per_node)

    def arguments(self, spec: str) -> list[str]:
        """What every process runs, after the name of the program."""
        sets = [word for text in self.overrides for word in ("--set", text)]
        return ["run", spec, "--out", self.store, *sets, "--elastic"]


def refuse(job: Job) -> None:
    """Raise FabricarloError for a job that no scheduler could run."""
    for name, value, least in (
        ("--nodes", job.nodes, 1),
        ("--gpus-per-node", job.gpus_per_node, 0),
    ):
        if value < least:
            raise FabricarloError(f"{name} is {value}; it must be at least {least}.")
    for option in job.options:
        if not re.fullmatch(r"[a-z][a-z-]*(=[^\n\"']*)?", option):
            raise FabricarloError(
                f"--option: '{option}' is no option of sbatch; write KEY=VALUE, "
                "e.g. partition=gpu or time=4:00:00."
            )


def job_name(sweep: Sweep) -> str:
    """A name that every scheduler takes: lower case letters, digits and -."""
    plain = re.sub(r"[^a-z0-9]+", "-", sweep.name.lower()).strip("-")
    return f"fabricarlo-{plain}"[:52].rstrip("-")


def sbatch_script(job: Job) -> str:
    """The batch script for Slurm: one job of N nodes, or an array of N jobs of one node."""
    name, logs = job_name(job.sweep), _logs(job)
    lines = {
        "job-name": name,
        "nodes": "1" if job.array else str(job.nodes),
        "array": f"0-{job.nodes - 1}" if job.array else None,
        "ntasks-per-node": str(job.tasks_per_node),
        "gpus-per-node": str(job.gpus_per_node) if job.gpus_per_node else None,
        "gpus-per-task": "1" if job.gpus_per_node and not job.process_per_node else None,
        "output": f"{logs}/{name}.{'%A_%a' if job.array else '%j'}.log",
    }
    head = [f"#SBATCH --{key}={value}" for key, value in lines.items() if value is not None]
    if not job.gpus_per_node:
        head.append("#SBATCH --exclusive")  # all processors of the node for its one process
    head += ["#SBATCH --requeue", "#SBATCH --open-mode=append", f"#SBATCH --signal=TERM@{WARNING}"]
    head += [f"#SBATCH --{option}" for option in job.options]
    command = shlex.join([sys.executable, "-m", "fabricarlo", *job.arguments(str(job.spec))])
    return _SCRIPT.format(head="\n".join(head), command=command, restarts=RESTARTS)


_SCRIPT = """#!/bin/bash
{head}

# Processes claim blocks of the sweep; the store is all that they share. Whatever is killed loses
# nothing that is finished: submitting this script again, or a requeue, goes on.

stopped=
trap 'stopped=1' TERM # scancel, preemption, or a requeue by others: the step is ended for us

srun --kill-on-bad-exit=0 --wait=0 \\
  {command}
code=$?

# the steps were warned that the time runs out, and have written down what is finished
if [[ -z $stopped && ( $code -eq 143 || $code -eq 137 ) ]] &&
  (( ${{SLURM_RESTART_COUNT:-0}} < {restarts} )); then
  exec scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
"""


def _logs(job: Job) -> str:
    """Where the log goes: beside the store, or here where the store is in an object store."""
    return os.getcwd() if is_url(job.store) else str(Path(job.store).absolute().parent)


def text_for(scheduler: str, job: Job, place: Place) -> str:
    """The script or the manifest. Raises FabricarloError for what it cannot do."""
    refuse(job)
    if scheduler not in SCHEDULERS:
        raise FabricarloError(
            f"--for: '{scheduler}' is unknown; there are {', '.join(SCHEDULERS)}."
        )
    if scheduler == "slurm":
        return sbatch_script(job)
    if not is_url(job.store):
        raise FabricarloError(
            f"--out: {job.store} is a directory; pods share an object store: write s3://BUCKET/NAME."
        )
    gpus = 0 if scheduler == "tpu" else (job.gpus_per_node if job.process_per_node else 1)
    spec = f"/sweep/{job.spec.name}"
    distributed = ["--distributed"] if scheduler == "tpu" else []
    return manifest(
        name=job_name(job.sweep),
        pods=job.nodes * (1 if scheduler == "tpu" else job.tasks_per_node),
        arguments=[*job.arguments(spec), *distributed],
        spec=(job.spec.name, job.sweep.text),
        gpus=gpus if job.gpus_per_node else 0,
        place=place,
    )


def launched(script: str, job: Job) -> str:
    """Submit a script; what to tell the person who did."""
    number = submit(script)
    kind = "array of jobs" if job.array else "job"
    return (
        f"submitted {kind} {number}: {job.nodes} nodes, {job.tasks_per_node} processes on each\n"
        f"progress: fabricarlo status {shlex.quote(job.store)}\n"
    )


def submit(script: str) -> str:
    """Give a script to sbatch; the number of the job."""
    if shutil.which("sbatch") is None:
        raise FabricarloError(
            "there is no sbatch on this machine: log in where Slurm is, or print the script "
            "(--print) and submit it there."
        )
    done = subprocess.run(
        ["sbatch", "--parsable"], input=script, text=True, capture_output=True, check=False
    )
    if done.returncode:
        raise FabricarloError(f"sbatch refused the job: {done.stderr.strip()}")
    return done.stdout.strip().partition(";")[0]
