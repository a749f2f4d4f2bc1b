"""Classes that JAX sees as trees of arrays."""

import dataclasses
from typing import Any, TypeVar

import jax

_Class = TypeVar("_Class")


def as_tree(cls: type[_Class]) -> type[_Class]:
    """Register a dataclass as a node of trees; its fields are the children.

    Not by jax.tree_util.register_dataclass: the structures of two classes registered so compare
    equal when they have as many fields (jaxlib 0.10.2), and their hashes differ only by an
    address. jax.jit then now and then runs what it has traced for the one class on the other.
    """
    fields: Any = cls
    names = tuple(field.name for field in dataclasses.fields(fields))
    keys = tuple(jax.tree_util.GetAttrKey(name) for name in names)

    def children(node: _Class) -> tuple[tuple[Any, ...], None]:
        return tuple(getattr(node, name) for name in names), None

    def named(node: _Class) -> tuple[tuple[tuple[Any, Any], ...], None]:
        return tuple(zip(keys, children(node)[0], strict=True)), None

    def build(_: None, values: Any) -> _Class:
        return cls(**dict(zip(names, values, strict=True)))

    jax.tree_util.register_pytree_with_keys(cls, named, build, children)
    return cls
