"""Where the arrays of a network lie on a mesh of devices."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from netloop.model.graph import ITensor, check_instance
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import Finding, NetworkError, did_you_mean, reason

Specs = Mapping[str, PartitionSpec]
Shape = tuple[int, ...]


class Sharding:
    """A mesh, and how the inputs, weights and outputs of a network are cut along its axes.

    An axis of the mesh that cuts weights is for tensor parallelism: XLA divides the computation along it, and adds
    collectives. Along every other axis the devices run the network on their own blocks of the inputs.

    Attributes:
        mesh: the mesh, with axes that XLA and ``shard_map`` may divide.
        own: the axes along which devices run the network on their own.
        inputs, outputs: the specs by name.
        weights: the specs of the constants that are cut, by the index of the layer.
    """

    def __init__(
        self,
        network: INetworkDefinition,
        constants: Sequence[IConstantLayer],
        mesh: Mesh,
        in_specs: Specs | None,
        out_specs: Specs | None,
    ) -> None:
        check_instance("mesh", mesh, Mesh)
        # axes of the type Explicit, as jax.make_mesh makes them, would ask each layer for the sharding of its results
        self.mesh = Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,) * mesh.devices.ndim)
        names = [tensor.name for tensor in network.inputs]
        specs = self._checked("in_specs", in_specs)
        self.weights = _weight_specs({name: spec for name, spec in specs.items() if name not in names}, constants)
        cutting = {axis for spec in self.weights.values() for axis in axes_of(spec)}
        self.own = tuple(axis for axis in mesh.axis_names if axis not in cutting)
        whole = PartitionSpec(self.own) if self.own else PartitionSpec()
        self.inputs = {name: specs.get(name, whole) for name in names}
        returned = self._checked("out_specs", out_specs)
        known = [tensor.name for tensor in network.outputs]
        for name in returned.keys() - set(known):
            raise _unknown("out_specs", name, known)
        cut = {axis for spec in self.inputs.values() for axis in axes_of(spec)}
        # outputs are joined as inputs were cut
        axes = tuple(axis for axis in self.own if axis in cut)
        joined = PartitionSpec(axes) if axes else PartitionSpec()
        self.outputs = {name: returned.get(name, joined) for name in known}
        self._require_even_weights(constants)

    def _checked(self, parameter: str, specs: Specs | None) -> dict[str, PartitionSpec]:
        if not isinstance(specs, Mapping | None):
            raise TypeError(f"{parameter} is a dict from names to PartitionSpecs, not {type(specs).__name__}")
        for name, spec in (specs or {}).items():
            check_instance(f"{parameter}[{name!r}]", spec, PartitionSpec)
            for axis in axes_of(spec):
                if axis not in self.mesh.axis_names:
                    axes = ", ".join(map(repr, self.mesh.axis_names))
                    raise ValueError(f"{parameter}[{name!r}] names the axis {axis!r}, and the mesh has {axes}")
        return dict(specs or {})

    def _require_even_weights(self, constants: Iterable[IConstantLayer]) -> None:
        findings: list[Finding] = []
        for layer in constants:
            spec = self.weights.get(layer.index, PartitionSpec())
            wrong = self.misfit(layer.outputs[0].type.shape, spec)
            if wrong:
                what = f"{layer.name!r} is {layer.outputs[0].type}, and cannot be cut by {text(spec)}: {wrong}"
                findings.append(layer.finding("NL618", what, reason("NL618")))
        if findings:
            raise NetworkError(*findings)

    # ------------------------------------------------------------------ single arrays

    def misfit(self, shape: Sequence[int], spec: PartitionSpec) -> str:
        """The reason why an array cannot be cut evenly; empty if it can."""
        if len(tuple(spec)) > len(shape):
            return f"it has {len(shape)} axes, and the spec {len(tuple(spec))}"
        for position, entry in enumerate(spec):
            parts = self._parts(entry, self.mesh.axis_names)
            if shape[position] % parts:
                return f"axis {position} has {shape[position]} elements, and goes to {parts} devices"
        return ""

    def block(self, shape: Sequence[int], spec: PartitionSpec) -> Shape:
        """The shape of the part of an array on which a device runs the network."""
        entries = [*spec, *[None] * (len(shape) - len(tuple(spec)))]
        return tuple(length // self._parts(name, self.own) for length, name in zip(shape, entries, strict=True))

    def _parts(self, entry: Any, axes: Collection[Any]) -> int:
        return math.prod(self.mesh.shape[axis] for axis in _axes(entry) if axis in axes)

    def own_part(self, spec: PartitionSpec) -> PartitionSpec:
        """A spec without the axes along which XLA divides the computation."""
        kept = [tuple(axis for axis in _axes(entry) if axis in self.own) for entry in spec]
        return PartitionSpec(*(entry or None for entry in kept))

    def left_out(self, spec: PartitionSpec) -> tuple[str, ...]:
        """The axes along which several devices run the network on their own, and which a spec does not have."""
        return tuple(axis for axis in self.own if axis not in axes_of(spec) and self.mesh.shape[axis] > 1)

    def place(self, array: Any, spec: PartitionSpec) -> jax.Array:
        """An array on the mesh; in several processes each gives the whole of a numpy array, or a global array."""
        sharding = NamedSharding(self.mesh, spec)
        # arrays of this process alone, or of all processes already
        if sharding.is_fully_addressable or (isinstance(array, jax.Array) and not array.is_fully_addressable):
            return jax.device_put(array, sharding)
        whole = np.asarray(array)
        # JAX asks each process for the parts of its own devices
        return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])


def axes_of(spec: PartitionSpec) -> tuple[str, ...]:
    """The axes of a mesh that a spec names."""
    return tuple(axis for entry in spec for axis in _axes(entry))


def text(spec: PartitionSpec) -> str:
    """A spec as a script writes it, which JAX itself has in several forms."""
    return f"PartitionSpec({', '.join(map(repr, spec))})"


def _axes(entry: Any) -> tuple[str, ...]:
    if entry is None:
        return ()
    return (entry,) if isinstance(entry, str) else tuple(entry)


def _weight_specs(given: Mapping[str, PartitionSpec], constants: Sequence[IConstantLayer]) -> dict[int, PartitionSpec]:
    """The specs by the index of the layer: that of its name, else of the first pattern that fits it."""
    specs: dict[int, PartitionSpec] = {}
    for name in given:
        if not any(name == constant.name or fnmatchcase(constant.name, name) for constant in constants):
            raise _unknown("in_specs", name, [constant.name for constant in constants])
    for layer in constants:
        # a name goes before patterns, which count in the order of the dict
        fitting = [name for name in given if name == layer.name or fnmatchcase(layer.name, name)]
        spec = given[layer.name if layer.name in fitting else fitting[0]] if fitting else PartitionSpec()
        if axes_of(spec):
            specs[layer.index] = spec
    return specs


def _unknown(parameter: str, name: str, known: Collection[str]) -> ValueError:
    hint = did_you_mean(name, known)
    of = "output" if parameter == "out_specs" else "input, and no weights"
    return ValueError(f"{parameter} names {name!r}, and the network has no such {of}" + (hint and f"; {hint}"))


def misplaced(tensor: ITensor, what: str, fix: str = "") -> Finding:
    """The finding for an input or output that does not fit its spec."""
    return Finding("NL618", what, why=reason("NL618"), fix=fix, at=tensor)
