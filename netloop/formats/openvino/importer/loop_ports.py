"""The roles of a loop's ports and of its body's Parameters and Results: trip count, condition, states, slices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from netloop.formats.openvino.importer.call import LayerCall
from netloop.formats.openvino.importer.model import UNCONNECTED, PortEntry, PortId, XmlBody, XmlLayer
from netloop.formats.openvino.importer.weights import element_type
from netloop.formats.shared.import_errors import present
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import quoted, require
from netloop.values.types import INDICES

COUNTER, CONDITION = "current_iteration", "execution_condition"

TRIP_COUNT_PORT, CONDITION_PORT = 0, 1
"""The ports of the trip count and of the condition in documents of the draft, which do not mark them."""


@dataclass(frozen=True)
class CarriedState:
    """A loop-carried value: a Parameter, its initial tensor, and the Result that is its next value."""

    parameter: int
    initial: ITensor
    result: int


@dataclass
class LoopRoles:
    """The roles in a loop; Parameters and Results of the body are given by their numbers.

    Attributes:
        body: the body.
        trip_count: the trip count, if there is one; below 0, any number.
        goes_on: whether there is a first iteration; None without a condition.
        condition: the Result that is the condition of another iteration.
        counter: the Parameter that is the number of the iteration.
        certain: the Parameters that are true in every iteration.
        states: the loop-carried values.
        sliced: the tensors that are read slice by slice, with their wiring.
        same: the loop-invariant tensors.
    """

    body: XmlBody
    trip_count: ITensor | None = None
    goes_on: ITensor | None = None
    condition: int | None = None
    counter: int | None = None
    certain: list[int] = field(default_factory=list[int])
    states: list[CarriedState] = field(default_factory=list[CarriedState])
    sliced: list[tuple[PortEntry, ITensor]] = field(default_factory=list[tuple[PortEntry, ITensor]])
    same: dict[int, ITensor] = field(default_factory=dict[int, ITensor])

    @property
    def outputs(self) -> list[PortEntry]:
        """The outputs of the loop."""
        return [port for port in self.body.outputs if port.port != UNCONNECTED]


def loop_roles(call: LayerCall, inputs: Sequence[ITensor | None]) -> LoopRoles:
    """Find the roles in a Loop or TensorIterator."""
    return _RoleFinder(call, inputs).find()


class _RoleFinder:
    """Finds the roles in a layer.

    A current document marks the Result that is the condition, and the first two inputs are the trip count and the
    condition. A document of the draft marks nothing: they are ports 0 and 1, by their types, and either may be missing.
    """

    def __init__(self, call: LayerCall, inputs: Sequence[ITensor | None]) -> None:
        self._make = call.make
        self._layer = call.layer
        self._body = call.body("body").xml
        self._tensors = {
            port.id: tensor for port, tensor in zip(call.layer.inputs, inputs, strict=True) if tensor is not None
        }
        self._parameters = {layer.id: layer for layer in self._body.graph.of_type("parameter")}
        self._mapped = {port.layer: port for port in self._body.inputs if port.port != UNCONNECTED}
        self._asked: ITensor | None = None
        self._roles = LoopRoles(self._body)

    def find(self) -> LoopRoles:
        """Find all roles."""
        roles, marked = self._roles, _marked(self._body.outputs, CONDITION)
        roles.counter = _marked(self._body.inputs, COUNTER)
        if self._layer.type.lower() == "loop":
            ports = [port.id for port in self._layer.inputs]
            if marked is not None:
                require(len(ports) >= 2, "a Loop has a trip count and a condition")
                self._limit(ports[0], ports[1])
                roles.condition = marked
            else:
                self._limit_in_draft()
        self._take_parameters()
        return roles

    # ------------------------------------------------------------------ what ends the loop

    def _limit(self, trips: int, condition: int) -> None:
        make, roles = self._make, self._roles
        for port, what in ((trips, "trip count"), (condition, "condition")):
            require(port in self._tensors, f"no edge leads to the {what}, input {port}")
        count = self._tensors[trips]
        require(count.type.is_index, f"the trip count is {count.type}, but must be a single int32 or int64")
        roles.trip_count = make.cast(make.scalar(count), np.int64)
        self._ask(self._tensors[condition])

    def _ask(self, condition: ITensor) -> None:
        self._asked = condition
        self._roles.goes_on = self._make.scalar(self._make.cast(condition, np.bool_))

    def _limit_in_draft(self) -> None:
        roles, make = self._roles, self._make
        mapped = {port.port for port in self._body.inputs}
        trips, goes_on = (self._tensors.get(number) for number in (TRIP_COUNT_PORT, CONDITION_PORT))
        if trips is not None and trips.type.is_index and TRIP_COUNT_PORT not in mapped:
            roles.trip_count = make.cast(make.scalar(trips), np.int64)
        free = [id for id in self._parameters if id not in self._mapped and id != roles.counter]
        if goes_on is not None and goes_on.type.is_bool and goes_on.type.shape in ((), (1,)):
            self._ask(goes_on)
            roles.condition = self._condition_in_draft()
        bools = [id for id in free if _is_bool(self._parameters[id])]
        for id in bools:
            # without a condition outside the loop always continues; the body reads its condition one iteration later
            what = f"{quoted(self._parameters[id].name)} of the body has no value"
            result = present(self._body.back_edges.get(id), what)
            roles.states.append(CarriedState(id, make.constant(True), result))
        numbers = [id for id in free if element_type(type_of(self._parameters[id])) in INDICES]
        if roles.counter is None and len(numbers) == 1:
            roles.counter = numbers[0]

    def _condition_in_draft(self) -> int:
        """The Result that is the condition."""
        body = self._body
        inside = [id for id, port in self._mapped.items() if port.port == CONDITION_PORT and id in body.back_edges]
        if inside:
            return body.back_edges[inside[0]]
        used = {*body.back_edges.values(), *(port.layer for port in body.outputs if port.port != UNCONNECTED)}
        free = [layer.id for layer in body.graph.of_type("result") if layer.id not in used and _gives_bool(body, layer)]
        require(
            len(free) == 1,
            f"{len(free)} Results of the body could be its condition",
            "a condition has purpose='execution_condition', or is the only bool Result without another use",
        )
        return free[0]

    # ------------------------------------------------------------------ inputs

    def _take_parameters(self) -> None:
        roles = self._roles
        taken = {state.parameter for state in roles.states}
        for id in self._body.back_edges:
            name = self._parameters[id].name
            require(
                id in self._mapped or id in taken,
                f"{quoted(name)} of the body is loop-carried, and has no initial value",
            )
        for id, entry in self._mapped.items():
            what = f"the port map reads port {entry.port}, which has no input"
            tensor = present(self._tensors.get(entry.port), what)
            if id != roles.counter:
                self._take(id, entry, tensor)

    def _take(self, id: int, entry: PortEntry, tensor: ITensor) -> None:
        roles, result = self._roles, self._body.back_edges.get(id)
        name = self._parameters[id].name
        require(entry.axis is None or result is None, f"{quoted(name)} of the body is both sliced and loop-carried")
        if entry.axis is not None:
            roles.sliced.append((entry, tensor))
        elif self._is_certain(id, tensor, result):
            roles.certain.append(id)
        elif result is not None:
            roles.states.append(CarriedState(id, tensor, result))
        else:
            roles.same[id] = tensor

    def _is_certain(self, id: int, tensor: ITensor, result: int | None) -> bool:
        """Whether a Parameter is the condition itself, which is true in every iteration."""
        if self._asked is not tensor:
            return False
        outside = {port.layer for port in self._roles.outputs}
        same = self._source(self._roles.condition), (id, self._parameters[id].outputs[0].id)
        return result is None or (result not in outside and self._source(result) in same)

    def _source(self, result: int | None) -> PortId | None:
        """The output that a Result reads."""
        layer = self._body.graph.layers.get(-1 if result is None else result)
        return self._body.graph.sources.get((layer.id, layer.inputs[0].id)) if layer and layer.inputs else None


def _marked(entries: Sequence[PortEntry], purpose: str) -> int | None:
    return next((port.layer for port in entries if port.purpose == purpose), None)


def _is_bool(parameter: XmlLayer) -> bool:
    return element_type(type_of(parameter)) == np.bool_


def type_of(parameter: XmlLayer) -> str:
    """The element type of a Parameter, by its name in the document."""
    return parameter.data.get("element_type") or parameter.outputs[0].precision


def _gives_bool(body: XmlBody, result: XmlLayer) -> bool:
    source = body.graph.sources.get((result.id, result.inputs[0].id)) if result.inputs else None
    if source is None:
        return False
    ports: Mapping[int, str] = {port.id: port.precision for port in body.graph.layers[source[0]].outputs}
    return ports[source[1]].lower() in ("bool", "boolean")
