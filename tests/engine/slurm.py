"""A real Slurm of virtual nodes on this machine: munged, slurmctld and one slurmd a node."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol")


def missing() -> str:
    """Why there is no Slurm to test with; empty where there is."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    lacking = [p for p in PROGRAMS if shutil.which(p, path=path) is None]
    if lacking:
        return f"no {', '.join(lacking)}: apt-get install slurm-wlm munge"
    return "" if os.geteuid() == 0 else "the daemons of Slurm need root"


class Cluster:
    """Nodes n1 ... that share this machine; everything lies in one folder."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder, self.nodes = folder, nodes
        self.conf = folder / "slurm.conf"
        self.environment = os.environ | {
            "SLURM_CONF": str(self.conf),
            "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
        }

    def start(self) -> None:
        """All daemons, and wait until the nodes are idle."""
        for name, mode in (("munge", 0o700), ("mrun", 0o755), ("state", 0o755), ("log", 0o755)):
            (self.folder / name).mkdir()
            (self.folder / name).chmod(mode)
        self._munge()
        self.conf.write_text("\n".join(self._configuration()) + "\n")
        self._run("slurmctld", "-f", str(self.conf), "-c")
        for k in range(1, self.nodes + 1):
            (self.folder / f"spool-n{k}").mkdir()
            self.begin_node(k)
        self._wait_idle()

    def _munge(self) -> None:
        key, run = self.folder / "munge" / "key", self.folder / "mrun"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self._run(
            "munged", "--force", f"--key-file={key}", f"--socket={run}/munge.socket",
            f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munge/log",
            f"--seed-file={self.folder}/munge/seed",
        )  # fmt: skip

    def _configuration(self) -> Iterator[str]:
        host, ports = socket.gethostname().partition(".")[0], free_ports(self.nodes + 1)
        yield from (
            "ClusterName=tests", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldPort={ports[0]}",
            "SlurmUser=root", "SlurmdUser=root", "AuthType=auth/munge", "CredType=cred/munge",
            f"AuthInfo=socket={self.folder}/mrun/munge.socket",
            f"SlurmctldPidFile={self.folder}/slurmctld.pid",
            f"SlurmdPidFile={self.folder}/slurmd-%n.pid",
            f"SlurmdSpoolDir={self.folder}/spool-%n", f"StateSaveLocation={self.folder}/state",
            f"SlurmctldLogFile={self.folder}/log/slurmctld",
            f"SlurmdLogFile={self.folder}/log/slurmd-%n",
            "ProctrackType=proctrack/pgid", "TaskPlugin=task/none",
            "JobAcctGatherType=jobacct_gather/none",
            "AccountingStorageType=accounting_storage/none", "MpiDefault=none",
            "SwitchType=switch/none", "ReturnToService=2", "SchedulerType=sched/builtin",
            "SelectType=select/cons_tres", "SelectTypeParameters=CR_CPU",
            "SlurmdParameters=config_overrides", "KillWait=2", "MinJobAge=300",
            "SlurmdTimeout=5", "SlurmctldTimeout=30", "InactiveLimit=0",
        )  # fmt: skip
        for k in range(1, self.nodes + 1):
            place = f"NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[k]}"
            yield f"NodeName=n{k} {place} CPUs=2 RealMemory=4000"
        yield "PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP"

    def begin_node(self, k: int) -> None:
        """Start the daemon of a node."""
        self._run("slurmd", "-f", str(self.conf), "-N", f"n{k}", "-c")

    def kill_node(self, k: int) -> int:
        """End everything of a node at once, as a power cut does; how many processes."""
        killed = 0
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                given = (process / "environ").read_bytes().split(b"\0")
                mine = f"SLURM_CONF={self.conf}".encode() in given
                if mine and f"SLURMD_NODENAME=n{k}".encode() in given:
                    os.kill(int(process.name), signal.SIGKILL)
                    killed += 1
        self._kill(self.folder / f"slurmd-n{k}.pid", signal.SIGKILL)
        return killed

    def state_of(self, job: str) -> str:
        """The state of a job as Slurm says it: PENDING, RUNNING, COMPLETED ..."""
        text = self._run("scontrol", "show", "job", job, "-o")
        return text.partition("JobState=")[2].partition(" ")[0]

    def field_of(self, job: str, name: str) -> str:
        """A field of `scontrol show job`."""
        text = self._run("scontrol", "show", "job", job, "-o")
        return text.partition(f" {name}=")[2].partition(" ")[0]

    def hurry(self, job: str) -> None:
        """Start a requeued job now instead of after the usual two minutes."""
        self._run("scontrol", "update", f"JobId={job}", "StartTime=now")

    def wait_for(self, job: str, *states: str, seconds: float) -> str:
        """Wait until a job is in one of these states."""
        end = time.monotonic() + seconds
        while (state := self.state_of(job)) not in states:
            if time.monotonic() > end:
                raise AssertionError(f"job {job} is {state}, not {states}, after {seconds} s")
            time.sleep(0.25)
        return state

    def stop(self) -> None:
        """End all jobs and daemons."""
        subprocess.run(
            ["scancel", "-u", "root"], env=self.environment, check=False, capture_output=True
        )
        for k in range(1, self.nodes + 1):
            self.kill_node(k)
        # nothing of the state in this folder is needed again
        for name in ("slurmctld.pid", "munged.pid"):
            self._kill(self.folder / name, signal.SIGKILL)

    def _kill(self, pid_file: Path, number: int) -> None:
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(pid_file.read_text()), number)

    def _wait_idle(self) -> None:
        end = time.monotonic() + 60
        while self._run("sinfo", "-h", "-o", "%t %D").split() != ["idle", str(self.nodes)]:
            if time.monotonic() > end:
                raise AssertionError(self._run("sinfo"))
            time.sleep(0.25)

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self.environment, text=True, capture_output=True, check=False
        )
        if done.returncode:
            raise AssertionError(f"{command}: {done.stderr}")
        return done.stdout


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    for found in sockets:
        found.bind(("127.0.0.1", 0))
    ports = [found.getsockname()[1] for found in sockets]
    for found in sockets:
        found.close()
    return ports


@contextlib.contextmanager
def cluster(folder: Path, nodes: int) -> Iterator[Cluster]:
    """A cluster, for as long as it is needed."""
    made = Cluster(folder, nodes)
    try:
        made.start()
        yield made
    finally:
        made.stop()
