"""Control flow."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from netloop.formats.openvino.importer.inputs import declared_shape
from netloop.formats.openvino.importer.loop_ports import LoopRoles, loop_roles, type_of
from netloop.formats.openvino.importer.loop_slices import joined, slices_of
from netloop.formats.openvino.importer.operators import LayerCall, Maybe, operator
from netloop.formats.openvino.importer.weights import element_type
from netloop.formats.shared import IterationResult, LoopLimits, LoopNames, build_loop
from netloop.formats.shared.alternatives import Split, Value, if_outputs
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import ILoop
from netloop.values.diagnostics import quoted, require


@operator("If", "opset8")
def conditional(call: LayerCall, condition: ITensor, *inputs: ITensor) -> list[Value]:
    """One of two graphs; a constant condition imports only that one."""
    make = call.make
    condition = make.scalar(make.cast(condition, np.bool_))
    value = make.known(condition)
    if value is not None:
        return _branch(call, "then_body" if value else "else_body", inputs)
    branches: list[list[Value]] = []
    for name, is_true in (("then_body", True), ("else_body", False)):
        with call.assumptions.assume(condition, is_true):
            branches.append(_branch(call, name, inputs))
    pairs = [_with_one_rank(call, a, b) for a, b in zip(*branches, strict=True)]
    return if_outputs(Split(make.network, condition, call.layer.name), *zip(*pairs, strict=True))


def _branch(call: LayerCall, name: str, inputs: Sequence[ITensor]) -> list[Value]:
    """The outputs of the layer in one branch."""
    inner = call.body(name)
    ports = dict(zip((port.id for port in call.layer.inputs[1:]), inputs, strict=True))
    for port in inner.xml.inputs:
        require(port.port in ports, f"<{name}> reads port {port.port}, which is not an input")
    results = inner.values({port.layer: ports[port.port] for port in inner.xml.inputs})
    values = {port.port: results[port.layer] for port in inner.xml.outputs}
    for port in call.layer.outputs:
        require(port.id in values, f"<{name}> has no result for output {port.id}")
    return [values[port.id] for port in call.layer.outputs]


def _with_one_rank(call: LayerCall, a: Value, b: Value) -> tuple[Value, Value]:
    """Both values, a scalar as a list of one if the other is a list."""
    if isinstance(a, ITensor) and isinstance(b, ITensor) and {a.type.rank, b.type.rank} == {0, 1}:
        return call.make.flat(a), call.make.flat(b)
    return a, b


@operator("TensorIterator", "opset1")
@operator("Loop", "opset5")
def loop(call: LayerCall, *inputs: Maybe) -> list[ITensor]:
    """A counted loop, a conditional loop, or both, or a loop over slices."""
    return _ImportedLoop(call, loop_roles(call, inputs)).outputs()


class _ImportedLoop:
    """An imported loop."""

    def __init__(self, call: LayerCall, roles: LoopRoles) -> None:
        self._call = call
        self._make = call.make
        self._roles = roles
        self._inner = call.body("body")
        self._slices = {entry.layer: slices_of(call.make, x, entry) for entry, x in roles.sliced}
        carried = {state.result for state in roles.states}
        outputs = roles.outputs
        self._joined = [port for port in outputs if port.axis is not None]
        self._finals = [port for port in outputs if port.axis is None and port.layer not in carried]

    def outputs(self) -> list[ITensor]:
        """The outputs of the layer."""
        states, layer = self._roles.states, self._call.layer
        left = build_loop(self._make, self._names(), [state.initial for state in states], self._limits(), self._body)
        last = dict(zip((state.result for state in states), left.last, strict=True))
        outputs = {port.port: last[port.layer] for port in self._roles.outputs if port.layer in last}
        outputs.update(zip((final.port for final in self._finals), left.finals, strict=True))
        outputs.update(zip((port.port for port in self._joined), left.rows, strict=True))
        for port in layer.outputs:
            require(port.id in outputs, f"no result of the body is output {port.id}")
        return [outputs[port.id] for port in layer.outputs]

    def _names(self) -> LoopNames:
        states, counter = self._roles.states, self._roles.counter
        before = [self._name(state.parameter) for state in states]
        after = [self._name(state.result) for state in states]
        return LoopNames(self._call.layer.name, before, after, "" if counter is None else self._name(counter))

    def _name(self, id: int) -> str:
        """The name of a Parameter or Result of the body."""
        return self._inner.xml.graph.layers[id].name

    def _limits(self) -> LoopLimits:
        make, roles = self._make, self._roles
        if roles.trip_count is None and roles.goes_on is None:
            return LoopLimits(self._common_length(), None)
        lengths = [
            make.tensor(np.int64(slice_.count)) for slice_ in self._slices.values() if isinstance(slice_.count, int)
        ]
        lengths += [slice_.count for slice_ in self._slices.values() if isinstance(slice_.count, ITensor)]
        if roles.trip_count is not None and (known := make.ints(roles.trip_count)) and known[0] >= 0:
            lengths.append(roles.trip_count)
        return LoopLimits(
            roles.trip_count, roles.goes_on, reduce(make.minimum, lengths) if lengths else None, endless=True
        )

    def _common_length(self) -> ITensor:
        """The number of slices of all sliced inputs; 1 if there are none."""
        make, name = self._make, self._call.layer.name
        counts = [slice_.count for slice_ in self._slices.values()]
        fixed = sorted({count for count in counts if isinstance(count, int)})
        require(len(fixed) <= 1, f"the sliced inputs have {fixed} slices, but must have equally many")
        require(bool(counts) or self._call.layer.type.lower() != "loop", "the loop has neither a count nor a condition")
        common = make.tensor(np.int64(fixed[0] if fixed else 1) if fixed or not counts else counts[0])
        for count in counts:
            if isinstance(count, ITensor) and count is not common:
                make.network.add_assertion(
                    make.equal(count, common), f"inputs of {quoted(name)} have equally many slices"
                )
        return common

    def _body(self, loop: ILoop, iteration: ITensor, values: Sequence[ITensor]) -> IterationResult:
        make, roles = self._make, self._roles
        tensors = {**roles.same, **{number: make.constant(True) for number in roles.certain}}
        tensors |= zip((state.parameter for state in roles.states), values, strict=True)
        tensors |= {id: slice_.read(loop) for id, slice_ in self._slices.items()}
        if roles.counter is not None:
            tensors[roles.counter] = self._counter(roles.counter, iteration)
        results = self._inner(tensors)
        goes_on = make.constant(True) if roles.condition is None else results[roles.condition]
        return IterationResult(
            make.scalar(make.cast(goes_on, np.bool_)),
            [_in_rank_of(make, state.initial, results[state.result]) for state in roles.states],
            [replace(joined(results[port.layer], port), name=self._name(port.layer)) for port in self._joined],
            [results[final.layer] for final in self._finals],
        )

    def _counter(self, id: int, iteration: ITensor) -> ITensor:
        """The number of the iteration, of the type and rank that the body declares."""
        parameter = self._inner.xml.graph.layers[id]
        number = self._make.cast(iteration, element_type(type_of(parameter)))
        return self._make.flat(number) if declared_shape(parameter) else number


def _in_rank_of(make: FormulaBuilder, initial: ITensor, following: ITensor) -> ITensor:
    """The next value of a state in the rank of its initial value: a list of one element for a scalar, or back."""
    ranks = initial.type.rank, following.type.rank
    if ranks == (0, 1):
        return make.scalar(following)
    return make.flat(following) if ranks == (1, 0) else following
