"""Kubernetes manifests of a sweep: an Indexed Job for plain or GPU nodes, or for a TPU slice."""

import dataclasses
import io
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

GRACE = 60  # s that a pod has after SIGTERM
RESTARTS = 100  # of every pod, unless its exit code says that its input is bad
BAD_INPUT = 2


@dataclasses.dataclass(frozen=True)
class Place:
    """Where pods run."""

    image: str = "fabricarlo:latest"
    secret: str = "fabricarlo-store"  # environment variables of the object store's credentials
    tpu_accelerator: str | None = None  # as GKE names it: tpu-v5-lite-podslice
    tpu_topology: str | None = None  # 4x4
    tpus_per_host: int = 4


def manifest(
    *,
    name: str,
    pods: int,
    arguments: list[str],
    spec: tuple[str, str],
    gpus: int,
    place: Place,
) -> str:
    """A ConfigMap with the spec, the Job, and for a TPU slice the service that its hosts need."""
    file, text = spec
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {file: LiteralScalarString(text if text.endswith("\n") else text + "\n")},
    }
    documents: list[dict[str, Any]] = [config]
    if place.tpu_accelerator:
        documents.append(_service(name))
    documents.append(_job(name, pods, arguments, gpus, place))
    yaml, out = YAML(), io.StringIO()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 4096  # type: ignore[assignment]
    yaml.dump_all(documents, out)
    return out.getvalue()


def _service(name: str) -> dict[str, Any]:
    """A headless service: the hosts of a slice find each other by name."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"clusterIP": "None", "selector": {"job-name": name}},
    }


def _job(name: str, pods: int, arguments: list[str], gpus: int, place: Place) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completionMode": "Indexed",
            "completions": pods,
            "parallelism": pods,
            "backoffLimitPerIndex": RESTARTS,
            "podFailurePolicy": {
                "rules": [
                    {
                        "action": "FailJob",
                        "onExitCodes": {
                            "containerName": "fabricarlo",
                            "operator": "In",
                            "values": [BAD_INPUT],
                        },
                    },
                    {
                        "action": "Ignore",  # a node that is drained or preempted
                        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                    },
                ]
            },
            "template": {"spec": _pod(name, arguments, gpus, place)},
        },
    }


def _pod(name: str, arguments: list[str], gpus: int, place: Place) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": "fabricarlo",
        "image": place.image,
        "command": ["fabricarlo", *arguments],
        "envFrom": [{"secretRef": {"name": place.secret}}],
        "volumeMounts": [{"name": "sweep", "mountPath": "/sweep", "readOnly": True}],
    }
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE,
        "containers": [container],
        "volumes": [{"name": "sweep", "configMap": {"name": name}}],
    }
    if place.tpu_accelerator:
        container["resources"] = {"limits": {"google.com/tpu": place.tpus_per_host}}
        container["ports"] = [{"containerPort": 8471}, {"containerPort": 8080}]
        pod["subdomain"] = name
        pod["nodeSelector"] = {
            "cloud.google.com/gke-tpu-accelerator": place.tpu_accelerator,
            "cloud.google.com/gke-tpu-topology": place.tpu_topology or "",
        }
    elif gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    return pod
