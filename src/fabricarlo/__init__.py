"""fabricarlo: Monte Carlo sweeps of AI-cluster designs, from YAML to labelled xarray datasets."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fabricarlo.reading import open
    from fabricarlo.running import run
    from fabricarlo.spec import load_spec

__version__ = "0.1.0"
__all__ = ["load_spec", "open", "run"]

_HOME = {"load_spec": "fabricarlo.spec", "run": "fabricarlo.running", "open": "fabricarlo.reading"}


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    # lazy (PEP 562), so that `fabricarlo --help` imports no scientific library
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'fabricarlo' has no attribute {name!r}")
