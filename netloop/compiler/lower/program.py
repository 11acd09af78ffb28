"""A network, or a piece of one, as a JAX function for one set of shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from netloop.compiler.layer_times import scope_name
from netloop.compiler.lower.conditional import lower_conditional
from netloop.compiler.lower.frame import Frame, first_error
from netloop.compiler.lower.loop.entry import lower_loop
from netloop.compiler.lower.loop.iterators import lower_iterator
from netloop.compiler.lower.loop.strategy import LoopStrategy, StrategyKind, is_for_a_graph
from netloop.compiler.lower.lowering import Lowering, LoweringOptions
from netloop.compiler.lower.uniform_operands import may_be_uniform, varied
from netloop.compiler.lower.weight_folding import WeightOnlySteps, find_weight_folding, read_by_others
from netloop.compiler.passes import LoweringForm
from netloop.compiler.passes.recurrent_kernels import RecurrentKernelLayer
from netloop.compiler.passes.rewriter import operand
from netloop.compiler.product_precision import HIGHEST, with_precision, without_algorithm
from netloop.model.graph.infer import TypeTable
from netloop.model.graph.layer import ILayer, Operation
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.assertion import IAssertionLayer
from netloop.model.layers.conditional import IIfConditionalInputLayer
from netloop.model.layers.loop import IIteratorLayer
from netloop.model.nest import Block, IfStep, LayerStep, LoopStep, Scopes, Step, depths_of, walk
from netloop.values.diagnostics import LayerError, NetworkError
from netloop.values.types import INTEGERS

NO_OPTIONS = LoweringOptions()


class Outcome(NamedTuple):
    """The results of a program.

    Attributes:
        values: the outputs.
        error_flags: the error flag of each output; None for one that cannot be poisoned.
        status: the error flag of the assertions; 0 if there are none.
    """

    values: list[Any]
    error_flags: list[Any]
    status: Any

    def verdict(self) -> Any:
        """The first error flag that is not 0; None if nothing can fail."""
        # a flag that is computed is read after each call, so there is none where nothing can fail
        return first_error(*self.error_flags, None if isinstance(self.status, int) else self.status)


class Program(Lowering):
    """Steps of a network, lowered for one set of types.

    Calling it, under ``jax.enable_x64``, traces it. Its errors, loop strategies, batched layers and notes are complete
    once it has been traced.

    Attributes:
        block: the steps.
        outputs: the tensors that it computes.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        outputs: Sequence[ITensor],
        types: TypeTable,
        scopes: Scopes,
        options: LoweringOptions = NO_OPTIONS,
    ) -> None:
        self.outputs = outputs
        self.block = Block(list(steps))
        super().__init__(self.block, types, scopes, options)

    def __call__(self, values: Mapping[ITensor, Any]) -> Outcome:
        """The outputs, given the inputs of the network and the constants of ``constants_of``."""
        return self.run_in(Frame(dict(values)))

    def run_in(self, frame: Frame) -> Outcome:
        """The outputs, given the values and iterations of a frame."""
        self.run(self.block.steps, frame)
        return self.outcome(frame)

    def outcome(self, frame: Frame) -> Outcome:
        """The outputs, once the steps have run in a frame."""
        values = [self.array(tensor, frame) for tensor in self.outputs]
        return Outcome(values, [frame.error_flag([tensor]) for tensor in self.outputs], frame.status)

    @property
    def depth(self) -> int:
        """The number of loops and conditionals nested in each other."""
        return max(depths_of(self.block).values(), default=0)

    @property
    def longest_body(self) -> int:
        """The number of layers in the longest loop body, with the layers of loops inside it."""
        bodies = (walk(step.body) for step in self.block.steps if isinstance(step, LoopStep))
        return max((sum(isinstance(step, LayerStep) for step in body) for body in bodies), default=0)

    @property
    def has_loop_graphs(self) -> bool:
        """Whether it is to be one CUDA graph with its loops, if the pass is in use."""
        loops = (step for step in walk(self.block) if isinstance(step, LoopStep))
        return LoweringForm.LOOP_GRAPHS in self.passes and any(is_for_a_graph(loop, self.facts) for loop in loops)

    def drop_kernels(self, error: Exception) -> bool:
        """Lower loops without kernels from now on, as one of them was not compiled; whether there were any."""
        has_kernels = any(strategy.kind is StrategyKind.KERNEL for strategy in self.loop_strategies.values())
        if not has_kernels or LoweringForm.LOOP_KERNELS not in self.passes:
            return False
        self.passes = self.passes - {LoweringForm.LOOP_KERNELS}
        self.notes = {note: None for note in self.notes if note.by != LoweringForm.LOOP_KERNELS}
        reason = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        self.note(LoweringForm.LOOP_KERNELS, f"there are no kernels, as they were not compiled: {reason[:200]}")
        return True

    @cached_property
    def weight_folding(self) -> WeightOnlySteps:
        """The steps that are computed at load time, if the pass is in use."""
        if LoweringForm.WEIGHT_FOLDING not in self.passes:
            return WeightOnlySteps([], [], [])
        steps = find_weight_folding(self.block, self.outputs, self.types)
        if steps.steps:
            self.note(LoweringForm.WEIGHT_FOLDING, f"layers that depend on weights only: {len(steps.steps)}")
        return steps

    def unfolded(self, tensors: Iterable[ITensor]) -> list[ITensor]:
        """Those of some tensors that the program needs besides the steps of ``weight_folding``."""
        folding = self.weight_folding
        late = {*read_by_others(self.block, folding.steps), *self.outputs, *folding.tensors}
        return [tensor for tensor in tensors if tensor in late]

    def load(self, values: Mapping[ITensor, Any]) -> list[Any]:
        """The tensors of ``weight_folding``, from the constants of ``constants_of`` and what is known of them.

        They are constants, and computed once, so that their products are always those of float32.
        """
        frame = Frame(dict(values))
        # steps whose results are given do not run again
        with with_precision(HIGHEST):
            self._run_steps(self.weight_folding.steps, frame)
        return [self.array(tensor, frame) for tensor in self.weight_folding.tensors]

    def run(self, steps: Iterable[Step], frame: Frame) -> None:
        """Run steps in order, and add their results to the frame."""
        # here and not around a whole trace, which JAX may continue later: in the body of a loop, or in a derivative
        with with_precision(self.precision):
            self._run_steps(steps, frame)

    def _run_steps(self, steps: Iterable[Step], frame: Frame) -> None:
        for step in steps:
            if isinstance(step, LayerStep):
                self._run_layer(step.layer, frame)
            elif isinstance(step, IfStep):
                lower_conditional(self, step, frame)
            else:
                with jax.named_scope(scope_name(step.loop)):
                    lower_loop(self, step, frame)

    def _run_layer(self, layer: ILayer, frame: Frame) -> None:
        if isinstance(layer, IIteratorLayer):
            lower_iterator(self, layer, frame)
        elif isinstance(layer, IAssertionLayer):
            self._assert(layer, frame)
        elif isinstance(layer, IIfConditionalInputLayer):
            frame.values[layer.outputs[0]] = self.read(operand(layer, 0), frame)
            frame.poison(layer.outputs, frame.error_flag(layer.inputs))
        # constants, and layers that are folded or batched, have their values already
        elif layer.outputs[0] not in frame.values and not all(tensor in self.constants for tensor in layer.outputs):
            self._compute(layer, frame)

    def _assert(self, layer: IAssertionLayer, frame: Frame) -> None:
        if frame.is_iteration:
            holds = layer.holds(self.array(operand(layer, 0), frame))
            flag = self.errors.flag(jnp.logical_not(holds), layer.failure())
            frame.status = first_error(frame.status, frame.error_flag(layer.inputs), flag)

    def _compute(self, layer: ILayer, frame: Frame) -> None:
        assert isinstance(layer, Operation)
        arrays = [self._operand(layer, position, frame) for position in range(len(layer.inputs))]
        try:
            with jax.named_scope(scope_name(layer)), without_algorithm(_multiplies_wide(layer, arrays)):
                result = layer.lower(*arrays, **self._named(layer, frame))
        except LayerError as error:
            raise NetworkError(layer.finding_of(error)) from error.__cause__
        except Exception as error:
            # errors of JAX name no layer
            error.add_note(f"while lowering {layer.described}, added at {layer.source_location}")
            raise
        if isinstance(layer, RecurrentKernelLayer) and layer.loop is not None:
            why = "all its iterations are one call of machine code"
            self.loop_strategies[layer.loop] = LoopStrategy(StrategyKind.KERNEL, why, layer.count)
        outputs = result if isinstance(result, tuple) else (result,)
        frame.values.update(zip(layer.outputs, outputs, strict=True))
        frame.poison(layer.outputs, frame.error_flag(layer.inputs))

    def _named(self, layer: Operation, frame: Frame) -> dict[str, Any]:
        """The arguments of a lowering besides the operands."""
        named: dict[str, Any] = {}
        if layer.draws:
            # drawn for the layer and its iterations, random numbers are those of the reference
            named["trips"] = tuple(frame.trips[loop] for loop in self.scopes.chain_of(layer.outputs[0]))
        return named

    def _operand(self, layer: ILayer, position: int, frame: Frame) -> Any:
        tensor = layer.inputs[position]
        if tensor is None:
            return None
        # JAX takes sizes as numbers and not as tracers
        if position in layer.SHAPE_INPUTS:
            return self.types[tensor].value
        value = self.read(tensor, frame)
        return varied(value) if layer.HAS_PRODUCTS and may_be_uniform(tensor, self.types) else value


def _multiplies_wide(layer: ILayer, arrays: Sequence[Any]) -> bool:
    """Whether a layer multiplies integers or float64."""
    return layer.HAS_PRODUCTS and (arrays[0].dtype in INTEGERS or arrays[0].dtype == np.float64)
