"""A spec file, read and checked: YAML to a Sweep."""

from fabricarlo.spec.load import load_spec
from fabricarlo.spec.resolved import resolved

__all__ = ["load_spec", "resolved"]
