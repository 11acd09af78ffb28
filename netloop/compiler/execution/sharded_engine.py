"""Networks compiled for a mesh of devices."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding

from netloop.compiler.execution.lowered_network import LoweredNetwork
from netloop.compiler.execution.program_cache import MOST_PROGRAMS, Given, ProgramCache
from netloop.compiler.execution.refittable import Refittable
from netloop.compiler.execution.row_independence import RowCheck
from netloop.compiler.execution.sharded_weights import ShardedLoader, ShardedWeights
from netloop.compiler.execution.sharding import Sharding, Specs, axes_of, misplaced, text
from netloop.compiler.jax_settings import pinned_settings
from netloop.compiler.lower import constants_of
from netloop.compiler.lower.compilability import require_arrays
from netloop.compiler.lru_cache import LruCache
from netloop.compiler.passes import MACHINE_CODE, NO_FORMS, Forms, LoweringForm, chosen
from netloop.compiler.placement import Placement
from netloop.compiler.recipe import Recipe
from netloop.compiler.xla_compilation import XlaFunction
from netloop.model.call_inputs import array_named, check_values, refuse_tracers
from netloop.model.check import ValidatedNetwork
from netloop.model.device_errors import completed
from netloop.model.graph.infer import TypeTable
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.sources import IConstantLayer
from netloop.model.manual_axes import varying_axes
from netloop.model.nest.listing import summary
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import Finding, InputError, NetworkError
from netloop.values.types import Array, agree
from netloop.values.unpicklable import Unpicklable

JOINING = frozenset({"horizontal_fusion", "matmul_partitioning"})
"""The passes that join or divide weights along an axis that may be cut, for which XLA adds collectives."""
OF_ONE_DEVICE = MACHINE_CODE | {LoweringForm.LOOP_KERNELS}
"""The passes that make what XLA cannot divide among devices."""


class _Program:
    """A program for blocks of some shapes, which XLA compiles for each number of rows.

    Attributes:
        lowered: the network that each device runs.
        tried: the shapes of inputs whose rows are known not to depend on each other.
    """

    def __init__(self, lowered: LoweredNetwork, load: ShardedLoader, make: Callable[[], XlaFunction]) -> None:
        self.lowered, self._load, self._make = lowered, load, make
        self._functions = LruCache[tuple[Any, ...], XlaFunction](MOST_PROGRAMS)
        self.tried = set[tuple[Any, ...]]()

    def __call__(self, loaded: list[jax.Array], arrays: list[jax.Array]) -> list[Any]:
        """The outputs.

        Raises:
            ExecutionError: a computation failed.
        """
        values, verdict = completed(self.compiled(loaded, arrays)(loaded, arrays))
        self.lowered.require(verdict)
        return values

    def loaded(self, weights: ShardedWeights) -> list[jax.Array]:
        """Its weight arguments."""
        return [*self._load(weights).values()]

    def compiled(self, loaded: list[jax.Array], arrays: list[jax.Array]) -> jax.stages.Compiled:
        """XLA's program for some inputs."""
        key = tuple(array.shape for array in arrays)
        return self._functions.find(key, self._make).compile(loaded, arrays)


class ShardedEngine(Unpicklable, Refittable):
    """A network compiled for a mesh of devices: ``engine({"x": x})["y"]``; ``netloop.shard`` makes it.

    It keeps its own copy of the network and of the weights. A program is compiled in the first call with new shapes. A
    ``Refitter`` replaces weights as those of an engine; in several processes each refits with the same ones.

    Attributes:
        network: the network.
        mesh: the mesh, as it was given.
        recipe: the decisions by which its programs are made.
        constants: the constants that are arguments of its programs.
    """

    def __init__(
        self,
        network: INetworkDefinition,
        mesh: Mesh,
        in_specs: Specs | None = None,
        out_specs: Specs | None = None,
        passes: Iterable[str] | None = None,
        max_trips: int | None = None,
        dependent_rows: bool = False,
        forms: Forms = NO_FORMS,
        tf32: bool = True,
    ) -> None:
        Recipe(max_trips=max_trips).validated(network)
        require_arrays(network)
        self.network, self.mesh = network.copy(), mesh
        with pinned_settings():
            self.constants = constants_of(self.network)
            self._sharding = Sharding(self.network, self.constants, mesh, in_specs, out_specs)
        names = chosen(passes) - (JOINING if passes is None and self._sharding.weights else frozenset())
        recipe = Recipe.of(names, forms, max_trips, tf32)
        # the devices of the mesh need not be of JAX's default platform, and may be of other processes
        own = next(iter(mesh.local_devices), mesh.devices.flat[0])
        self.recipe = replace(recipe, placement=Placement.on(own))
        self._has_ranks = any(layer.num_ranks > 1 for layer in self.network.layers)
        self._name_ranks()
        is_by_device = dependent_rows or self._has_ranks
        self._row_check = (
            None if is_by_device else RowCheck(self.network, self._sharding, self.recipe.product_type.is_rounded)
        )
        self._programs: dict[frozenset[str], ProgramCache[_Program]] = {}
        self._latest: _Program | None = None
        super().__init__()
        self._take_weights()

    def __repr__(self) -> str:
        shape = " x ".join(f"{name} {length}" for name, length in self.mesh.shape.items())
        return f"<ShardedEngine {summary(self.network)}, on {shape}, {self.program_count} compiled>"

    def _name_ranks(self) -> None:
        """Let the ranks be the only axis that there is for them."""
        for layer in self.network.layers:
            if layer.num_ranks > 1 and len(self._sharding.own) == 1 and not layer.metadata:
                layer.metadata = self._sharding.own[0]

    def __call__(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, jax.Array]:
        """Run the network on the mesh; return the outputs by name, as arrays on the mesh with axes of the type Auto.

        Args:
            inputs: a numpy or JAX array for each input, of its element type. In several processes each passes the same
                numpy arrays, or JAX arrays of all processes.
            named: the arrays as arguments, instead of the dict.

        Raises:
            TypeError: there are both a dict and named arrays.
            InputError: an input is missing, unknown, of another element type or shape, or cannot be cut evenly.
            NetworkError: the network is invalid for these shapes, an output cannot be joined, or rows of blocks depend
                on each other.
            ExecutionError: a computation failed, in any row on any device.
        """
        if inputs is not None and named:
            raise TypeError("an engine takes a dict of arrays, or the arrays by name, and not both")
        with self.settings():
            program, weights, arrays = self._find(named if inputs is None else inputs)
            outputs = program(program.loaded(weights), arrays)
            if self._row_check is not None:
                self._check_rows(self._row_check, program, weights, arrays, outputs)
            return dict(zip(self._sharding.outputs, outputs, strict=True))

    def _check_rows(
        self, check: RowCheck, found: _Program, weights: ShardedWeights, arrays: list[jax.Array], outputs: list[Any]
    ) -> None:
        """Check, once for each shape, that rows of a block do not depend on each other."""
        key = tuple(array.shape for array in arrays)
        # rows before the axes of an input are separate runs by vmap
        if key in found.tried or self._with_rows(self._by_name(arrays)):
            return

        def run_longer(arrays: list[jax.Array]) -> list[jax.Array]:
            # its program is for one call, and is not kept
            (program, _, placed), _ = self._of_one_generation(lambda: self._find_in({}, self._by_name(arrays)))
            # the weights are those of the call: a refit may have replaced them meanwhile
            return program(program.loaded(weights), placed)

        if check(partial(found, found.loaded(weights)), run_longer, arrays, outputs):
            found.tried.add(key)

    def _by_name(self, arrays: list[jax.Array]) -> dict[str, Any]:
        return dict(zip(self._sharding.inputs, arrays, strict=True))

    def hlo(self, inputs: Mapping[str, Any]) -> str:
        """XLA's text of the program that one device runs for some inputs, with the collectives in it.

        Raises:
            InputError, NetworkError: as a call does.
        """
        with self.settings():
            program, weights, arrays = self._find(inputs)
            return program.compiled(program.loaded(weights), arrays).as_text() or ""

    @property
    def latest(self) -> LoweredNetwork | None:
        return self._latest.lowered if self._latest else None

    def prepare(self, inputs: Mapping[str, Any]) -> None:
        with self.settings():
            program, weights, arrays = self._find(inputs)
            program.compiled(program.loaded(weights), arrays)

    def run_to_end(self, inputs: Mapping[str, Any]) -> None:
        jax.block_until_ready(self(inputs))

    @property
    def program_count(self) -> int:
        """The number of programs: one for each combination of shapes that a device has, and of inputs with rows."""
        return sum(map(len, self._programs.values()))

    @property
    def refittable_constants(self) -> list[IConstantLayer]:
        """The constants whose weights can be replaced: all."""
        return self.constants

    def _take_weights(self) -> None:
        with self.settings():
            self.weights = ShardedWeights(self.constants, self._sharding)

    def forget_programs(self) -> None:
        self._programs = {}

    def _find(self, inputs: Mapping[str, Any]) -> tuple[_Program, ShardedWeights, list[jax.Array]]:
        """The program for some inputs, the weights, and the arrays of the inputs on the mesh."""
        (program, weights, arrays), _ = self._of_one_generation(lambda: self._find_in(self._programs, inputs))
        self._latest = program
        return program, weights, arrays

    def _find_in(
        self, programs: dict[frozenset[str], ProgramCache[_Program]], inputs: Mapping[str, Any]
    ) -> tuple[_Program, ShardedWeights, list[jax.Array]]:
        values, weights = self._arrays(inputs), self.weights
        with_rows = self._with_rows(values)
        # a row has the types of a single run, whose program is another one
        cache = programs.get(with_rows)
        if cache is None:
            cache = ProgramCache(self.network, lambda *rest: self._compile(with_rows, *rest))
            cache = programs.setdefault(with_rows, cache)
        self._require_fit(values, with_rows, cache.shape_inputs)
        # a program is that of one device, and depends on what this device sees
        blocks = {name: self._block(values[name], name, name in with_rows) for name in values}
        program = cache.find(check_values(self.network.inputs, blocks))
        return (
            program,
            weights,
            [self._sharding.place(values[name], spec) for name, spec in self._sharding.inputs.items()],
        )

    def _arrays(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        names = {tensor.name for tensor in self.network.inputs}
        # it says all that is wrong
        if not isinstance(inputs, Mapping) or names != set(inputs):
            check_values(self.network.inputs, inputs)
        result = {name: array_named(name, tensor) for name, tensor in inputs.items()}
        refuse_tracers({tensor: result[tensor.name] for tensor in self.network.inputs})
        return result

    def _with_rows(self, given: Mapping[str, Any]) -> frozenset[str]:
        """The names of the inputs that have an axis of rows before their own."""
        ranks = {tensor.name: tensor.type.rank for tensor in self.network.inputs if tensor.type.is_tensor}
        return frozenset(name for name, array in given.items() if array.ndim == ranks.get(name, -1) + 1)

    def _require_fit(self, given: Mapping[str, Any], with_rows: frozenset[str], whole: Iterable[ITensor]) -> None:
        """Check that inputs can be cut evenly, and have as many rows as each other."""
        findings: list[Finding] = []
        for tensor in self.network.inputs:
            array, spec = given[tensor.name], self._sharding.inputs[tensor.name]
            wrong = self._sharding.misfit(array.shape, spec)
            if not wrong and tensor in whole and (tensor.name in with_rows or axes_of(spec)):
                wrong = "its value decides a shape, and has to be the same everywhere"
            if not wrong and axes_of(spec):
                wrong = self._block_misfit(tensor, array, tensor.name in with_rows)
            if wrong:
                what = f"the value of {tensor.name!r} cannot be cut by {text(spec)}: {wrong}"
                fix = f"pass in_specs={{{tensor.name!r}: PartitionSpec()}} if it is the same on all devices"
                findings.append(misplaced(tensor, what, fix))
        counts = {name: given[name].shape[0] for name in sorted(with_rows)}
        if len(set(counts.values())) > 1:
            what = ", ".join(f"{name!r} has {count}" for name, count in counts.items())
            findings.append(Finding("NL618", f"inputs have different numbers of rows: {what}"))
        if findings:
            raise InputError(*findings)

    def _block_misfit(self, tensor: ITensor, array: Any, has_rows: bool) -> str:
        """The fault in the shape that each device gets, or each row of it; empty if there is none."""
        block, declared = self._block(array, tensor.name, has_rows), tensor.type
        if agree(block.shape, declared.shape):
            return ""
        gets = f"each {'row' if has_rows else 'device'} gets {declared.with_shape(block.shape)}"
        return f"{gets}, and the input is {declared}"

    def _block(self, array: Any, name: str, has_rows: bool) -> Any:
        """The input as the network sees it: an array of the shape of a device's block, or of one row of it."""
        spec = self._sharding.inputs[name]
        if not has_rows and not axes_of(spec):
            return array
        shape = self._sharding.block(array.shape, spec)[has_rows:]
        return _stand_in(shape, array.dtype)

    def _compile(self, with_rows: frozenset[str], types: TypeTable, validated: ValidatedNetwork, _: Given) -> _Program:
        recipe = replace(self.recipe, passes=self.recipe.passes - OF_ONE_DEVICE)
        lowered = LoweredNetwork.of(self.network, types, validated, recipe)
        load = ShardedLoader(lowered, self.constants, self._sharding)
        with lowered.timer.phase("load"):
            # in the order of the arguments of the program
            tensors = list(load(self.weights))

        def one(weights: list[Any], arrays: list[Any]) -> tuple[list[Any], Any]:
            outcome = lowered.run(dict(zip(tensors, weights, strict=True)), arrays)
            return outcome.values, outcome.verdict()

        rows = [0 if tensor.name in with_rows else None for tensor in lowered.inputs]
        run = jax.vmap(one, (None, rows)) if with_rows else one
        mapped, placed = self._on_mesh(run)
        return _Program(lowered, load, lambda: lowered.function(mapped, out_shardings=placed))

    def _on_mesh(self, run: Callable[..., tuple[list[Any], Any]]) -> tuple[Callable[..., Any], Any]:
        """The function of the whole mesh, given that of one device, and where its results are."""
        sharding, specs = self._sharding, [*self._sharding.outputs.values()]

        def local(weights: list[Any], arrays: list[Any]) -> tuple[list[Any], Any]:
            values, verdict = run(weights, arrays)
            self._require_joinable(values)
            if verdict is None:
                return values, None
            # a device may have run several rows
            verdict = verdict.max()
            return values, lax.pmax(verdict, sharding.own) if sharding.own else verdict

        # without an axis of its own for the devices, XLA divides all of the computation
        mapped = local
        if sharding.own:
            result = [sharding.own_part(spec) for spec in sharding.inputs.values()]
            mapped = jax.shard_map(
                local,
                mesh=sharding.mesh,
                in_specs=(jax.P(), result),
                out_specs=([sharding.own_part(spec) for spec in specs], jax.P()),
                axis_names=set(sharding.own),
                # the check traces bodies of loops twice, and is needed only where something must not vary
                check_vma=self._has_ranks or any(map(sharding.left_out, specs)),
            )
        # the verdict is the same on all devices
        whole = NamedSharding(sharding.mesh, jax.P())
        return mapped, ([NamedSharding(sharding.mesh, spec) for spec in specs], whole)

    def _require_joinable(self, values: list[Any]) -> None:
        """Check that the results of devices can be joined as their specs say."""
        findings: list[Finding] = []
        for tensor, value in zip(self.network.outputs, values, strict=True):
            spec = self._sharding.outputs[tensor.name]
            shown = f"output {tensor.name!r}"
            differs = [name for name in self._sharding.left_out(spec) if name in varying_axes(value)]
            if len(tuple(spec)) > value.ndim:
                what = f"{shown} has {value.ndim} axes on each device, and cannot be joined by {text(spec)}"
                fix = f"pass out_specs={{{tensor.name!r}: PartitionSpec()}} if it is the same on all devices"
                findings.append(misplaced(tensor, what, fix))
            elif differs:
                what = f"{shown} may differ from device to device along {differs[0]!r}, which {text(spec)} leaves out"
                fix = "add the axis to its spec, or reduce the output over the devices with add_dist_collective"
                findings.append(misplaced(tensor, what, fix))
        if findings:
            raise NetworkError(*findings)


def _stand_in(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array of a shape that takes no memory, as only its type is looked at."""
    return np.broadcast_to(np.zeros((), dtype), shape)
