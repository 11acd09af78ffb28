"""Edits that break one rule in a valid network, one for each code that a network can have."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import netloop as trt
from netloop.model.check.demand import known_count
from netloop.model.graph.layer import ILayer, Operation
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.conditional import IIfConditionalBoundaryLayer
from netloop.model.layers.loop import ILoopBoundaryLayer
from netloop.model.nest import Scopes, live_layers
from netloop.values.types import OWN, UNKNOWN, OptionalType, SequenceType
from tests.support.networks import CONCATENATE, COUNT, LAST, WHILE, Op
from tests.support.plugin_examples import Plugin
from tests.support.strategies import Grower
from tests.support.tensor_drawing import is_empty

ROOM = 2 * Grower.most_trips

BREAKERS: dict[str, Callable[["Wrecker"], Any]] = {}
"""By code: edits that break a network and return the object of the finding; None if the network does not allow it."""

REFUSED_BY_CALLS: dict[str, Callable[["Wrecker"], Any]] = {}
"""By code: calls that raise at once."""

REFUSED_BY_JAX: dict[str, Callable[["Wrecker"], Any]] = {}
"""By code: edits after which a network is valid, but not a pure function."""

NOT_OF_A_NETWORK = {
    "NL109": "of a profile, which is no part of a network",
    "NL421": "of classes that scripts can only mention",
    "NL504": "of a derivative of a pure function",
    "NL6": "of a call, a run or a device",
    "NL7": "of a file, or of the demo",
}
"""Codes, or prefixes of codes, that no network has by itself, and their subjects."""


def breaks(code: str, register: dict[str, Any] = BREAKERS) -> Callable[[Any], Any]:
    def enter(breaker: Any) -> Any:
        assert code not in register
        register[code] = breaker
        return breaker

    return enter


class Wrecker:
    """A network that has grown, to be broken.

    Attributes:
        grow: what grew it, with words to add more.
        live: its live layers that are inside no conditional: what these make may become an output.
        tensors: what they make.
    """

    def __init__(self, grow: Grower) -> None:
        self.grow = grow
        self.network = grow.network
        self.scopes = Scopes(self.network)
        entered = inside_conditionals(self.network)
        self.live = [layer for layer in live_layers(self.network) if layer not in entered]
        self.tensors = [tensor for layer in self.live for tensor in layer.outputs]
        plain = [tensor for tensor in self.tensors if not isinstance(tensor.type, SequenceType | OptionalType)]
        self.plain = [tensor for tensor in plain if not tensor.type.is_string]

    def one_of(self, things: Iterable[Any]) -> Any:
        """One of some things by chance; None if there are none."""
        found = list(things)
        return self.grow.choose(*found) if found else None

    def live_layer(self, kind: type[ILayer], wanted: Callable[[Any], bool] = lambda layer: True) -> Any:
        return self.one_of(layer for layer in self.live if isinstance(layer, kind) and wanted(layer))

    def live_loop(self, wanted: Callable[[trt.ILoop], bool] = lambda loop: True) -> trt.ILoop | None:
        found = dict.fromkeys(layer.loop for layer in self.live if isinstance(layer, ILoopBoundaryLayer))
        return self.one_of(loop for loop in found if wanted(loop))

    def inside(self, loop: trt.ILoop | None = None) -> ITensor | None:
        """A tensor that varies in a loop, and in none inside of it."""
        chains = ((tensor, self.scopes.chain_of(tensor)) for tensor in self.tensors)
        return self.one_of(tensor for tensor, chain in chains if chain and loop in (None, chain[-1]))

    def fixed(self, number: Any) -> ITensor:
        return self.grow.fixed(number)

    def like(self, tensor: ITensor) -> ITensor:
        """A constant of its type."""
        return self.grow.constant(tensor.dtype, tuple(1 if length == UNKNOWN else length for length in tensor.shape))

    def state(self, loop: trt.ILoop, tensor: ITensor, first: ITensor | None = None) -> ITensor:
        """A recurrence with a next value."""
        made = loop.add_recurrence(self.like(tensor) if first is None else first)
        made.set_input(1, tensor)
        return made.get_output(0)

    def let_out(self, tensor: ITensor, loops: Iterable[trt.ILoop]) -> None:
        """Mark it as an output, after it has left some loops, given from the outermost."""
        for loop in reversed(list(loops)):
            tensor = loop.add_loop_output(self.state(loop, tensor), LAST).get_output(0)
        self.network.mark_output(tensor)

    def around(self, loop: trt.ILoop) -> tuple[trt.ILoop, ...]:
        return self.scopes.chain_around(loop)

    def trips(self, loop: trt.ILoop) -> int:
        """The number of iterations, if it is known; else 0."""
        limit = loop.limit(COUNT)
        known = None if limit is None or loop.limit(WHILE) else limit.tensor(0).type.ints()
        return known[0] if known else 0


def is_static(tensor: ITensor) -> bool:
    return UNKNOWN not in tuple(tensor.shape) and not is_empty(tensor)


def inside_conditionals(network: trt.INetworkDefinition) -> set[ILayer]:
    """The layers that depend on an input of a conditional, and all of the loops and conditionals that do."""
    stack = [layer for layer in network.layers if isinstance(layer, trt.IIfConditionalInputLayer)]
    found: set[ILayer] = set()
    while stack:
        layer = stack.pop()
        if layer not in found:
            found.add(layer)
            stack += [user for tensor in layer.outputs for user, _ in tensor.uses]
            stack += layer.loop.layers if isinstance(layer, ILoopBoundaryLayer) else []
            stack += layer.conditional.layers if isinstance(layer, IIfConditionalBoundaryLayer) else []
    return found


# ---------------------------------------------------------------------------- wiring


@breaks("NL101")
def take_away_an_input(w: Wrecker) -> Any:
    """As a file can; no call does."""
    layer = w.live_layer(ILayer, lambda layer: layer.inputs and layer.REQUIRED_INPUTS)
    if layer is not None:
        layer._rewire(w.grow.between(0, layer.REQUIRED_INPUTS - 1), None)
    return layer


@breaks("NL102")
def lead_around_without_a_recurrence(w: Wrecker) -> Any:
    first = w.live_layer(Operation, lambda value: value.inputs)
    if first is None:
        return None
    after, scope = [first], w.scopes.of(first.outputs[0])
    for layer in after:
        users = [user for tensor in layer.outputs for user, _ in tensor.uses if user in w.live and user.outputs]
        users = [user for user in users if isinstance(user, Operation) and w.scopes.of(user.outputs[0]) == scope]
        after += [user for user in users if user not in after]
    first.set_input(w.grow.between(0, len(first.inputs) - 1), w.one_of(layer.outputs[0] for layer in after))
    return ...


@breaks("NL103", REFUSED_BY_CALLS)
def use_a_tensor_of_another_network(w: Wrecker) -> Any:
    foreign = trt.INetworkDefinition().add_input("x", trt.float32, (2,))
    layer = w.live_layer(ILayer, lambda value: value.inputs)
    w.grow.choose(
        lambda: w.network.add_identity(foreign),
        lambda: w.network.mark_output(foreign),
        lambda: (layer or w.network.add_identity(w.network.inputs[0])).set_input(0, foreign),
    )()


@breaks("NL104", REFUSED_BY_CALLS)
def add_an_input_of_a_name_in_use(w: Wrecker) -> Any:
    w.network.add_input(w.one_of(w.network.inputs).name, trt.float32, (2,))


@breaks("NL105")
def mark_no_output(w: Wrecker) -> Any:
    for tensor in list(w.network.outputs):
        w.network.unmark_output(tensor)
    return w.network


@breaks("NL106")
def give_a_name_twice(w: Wrecker) -> Any:
    output = w.one_of(w.network.outputs)
    others = [tensor for tensor in [*w.network.inputs, *w.network.outputs] if tensor is not output]
    output.name = w.one_of(others).name
    return ...


@breaks("NL108")
def give_out_an_input(w: Wrecker) -> Any:
    w.network.mark_output(found := w.one_of(w.network.inputs))
    return found


# ---------------------------------------------------------------------------- loops


@breaks("NL201")
def add_a_loop_without_end(w: Wrecker) -> Any:
    source = w.one_of(filter(is_static, w.tensors))
    if source is None:
        return None
    loop = w.network.add_loop()
    first = loop.add_recurrence(source).get_output(0)
    first.producer.set_input(1, first)
    w.let_out(loop.add_loop_output(first, LAST).get_output(0), w.scopes.chain_of(source))
    return loop


@breaks("NL202")
def add_a_second_limit(w: Wrecker) -> Any:
    limit = w.live_layer(trt.ITripLimitLayer)
    return limit and limit.loop.add_trip_limit(limit.tensor(0), limit.kind)


@breaks("NL203")
def add_a_recurrence_without_a_next_value(w: Wrecker) -> Any:
    loop = w.live_loop()
    if loop is None:
        return None
    made = loop.add_recurrence(w.grow.constant(trt.int8, (2,)))
    w.let_out(loop.add_loop_output(made.get_output(0), LAST).get_output(0), w.around(loop))
    return made


@breaks("NL204")
def let_out_the_last_value_of_no_recurrence(w: Wrecker) -> Any:
    loop = w.live_loop()
    tensor = loop and w.one_of(
        tensor
        for tensor in w.tensors
        if loop in w.scopes.chain_of(tensor)[-1:] and not isinstance(tensor.producer, trt.IRecurrenceLayer)
    )
    return tensor and loop.add_loop_output(tensor, LAST)


@breaks("NL205")
def change_the_type_of_a_state(w: Wrecker) -> Any:
    layer = w.live_layer(trt.IRecurrenceLayer)
    if layer is None:
        return None
    state = layer.get_output(0)
    longer = w.grow.constant(state.dtype, (*(max(0, length) for length in state.shape), 2))
    other = trt.int32 if state.dtype is not trt.int32 else trt.float32
    layer.set_input(1, w.grow.choose(longer, w.grow.constant(other, ())))
    return layer


@breaks("NL207")
def count_to_what_comes_out(w: Wrecker) -> Any:
    output = w.live_layer(
        trt.ILoopOutputLayer, lambda layer: is_static(layer.get_output(0)) and layer.loop.limit(COUNT) is not None
    )
    if output is None:
        return None
    limit = output.loop.limit(COUNT)
    limit.set_input(0, w.grow.one(output.get_output(0), limit.tensor(0)))
    return ...


@breaks("NL208")
def begin_with_what_is_made_inside(w: Wrecker) -> Any:
    loop = w.live_loop()
    tensor = loop and w.inside(loop)
    if tensor is None:
        return None
    if len(tensor.shape) and w.grow.coin():
        return loop.add_iterator(tensor)
    return w.state(loop, tensor, tensor).producer


@breaks("NL209")
def put_two_loops_into_each_other(w: Wrecker) -> Any:
    layer = w.live_layer(trt.IRecurrenceLayer)
    if layer is None:
        return None
    loop = w.network.add_loop()
    loop.add_trip_limit(w.fixed(np.int32(2)), COUNT)
    state = loop.add_recurrence(layer.get_output(0))
    state.set_input(1, state.get_output(0))
    layer.set_input(1, state.get_output(0))
    return loop


@breaks("NL210")
def mark_what_is_inside(w: Wrecker) -> Any:
    tensor = w.inside()
    if tensor is None:
        return None
    w.network.mark_output(tensor)
    return tensor.producer


@breaks("NL211")
def mix_two_loops(w: Wrecker) -> Any:
    loop, tensor = w.network.add_loop(), w.inside()
    if tensor is None:
        return None
    loop.add_trip_limit(w.fixed(np.int32(2)), COUNT)
    other = w.state(loop, w.like(tensor))
    w.network.mark_output(w.grow.combine(tensor, other, Op.EQUAL))
    return ...


@breaks("NL212")
def go_backwards_without_a_count(w: Wrecker) -> Any:
    loop = w.live_loop(lambda loop: loop.limit(COUNT) is None)
    return loop and loop.add_iterator(w.grow.constant(trt.float32, (ROOM,)), 0, True)


@breaks("NL213")
def decide_by_an_iterator(w: Wrecker) -> Any:
    known = {finding.at for finding in trt.check(w.network) if finding.code == "NL213"}
    limit = w.live_layer(trt.ITripLimitLayer, lambda value: value.kind is WHILE and value not in known)
    if limit is None:
        return None
    flag = limit.loop.add_iterator(w.grow.constant(trt.bool, (ROOM,))).get_output(0)
    limit.set_input(0, w.grow.combine(limit.tensor(0), flag, Op.AND))
    return limit


def stack(w: Wrecker, loop: trt.ILoop, tensor: ITensor, length: int) -> Any:
    layer = loop.add_loop_output(tensor, CONCATENATE)
    layer.set_input(1, w.fixed(np.int32(length)))
    w.let_out(layer.get_output(0), w.around(loop))
    return layer


@breaks("NL214")
def stack_what_is_outside(w: Wrecker) -> Any:
    loop = w.live_loop()
    return loop and stack(w, loop, w.grow.constant(trt.float32, (2,)), ROOM)


@breaks("NL215")
def leave_too_little_room_for_what_nothing_needs(w: Wrecker) -> Any:
    loop = w.live_loop(lambda loop: w.trips(loop) > 0 and not w.around(loop))
    if loop is None:
        return None
    layer = loop.add_loop_output(w.state(loop, w.grow.constant(trt.int8, (2,))), CONCATENATE)
    layer.set_input(1, w.fixed(np.int32(w.trips(loop) - 1)))
    w.network.mark_output(w.network.add_shape(layer.get_output(0)).get_output(0))
    return layer


@breaks("NL216")
def pass_the_end_of_an_axis_where_nothing_needs_it(w: Wrecker) -> Any:
    loop = w.live_loop(lambda loop: w.trips(loop) > 0)
    if loop is None:
        return None
    layer = loop.add_iterator(w.grow.constant(trt.float32, (2, w.trips(loop) - 1)), 1)
    stack(w, loop, w.state(loop, layer.get_output(0)), ROOM)
    return layer


def failing(w: Wrecker, loop: trt.ILoop) -> tuple[ILayer, ITensor]:
    """A loop output or an iterator that fails if it is needed, and a tensor that needs it."""
    count = 0 if loop.limit(WHILE) else known_count(loop, w.network.types) or 0
    if count and w.grow.coin():
        layer = loop.add_iterator(w.grow.constant(trt.int8, (2, count - 1)), 1, w.grow.coin())
        return layer, stacked_output(w, loop, layer.get_output(0), ROOM).get_output(0)
    wrong = w.grow.choose(-1, 1 << 62, count - 1)
    layer = stacked_output(w, loop, w.state(loop, w.grow.constant(trt.int8, (2,))), wrong)
    return layer, layer.get_output(0)


def stacked_output(w: Wrecker, loop: trt.ILoop, tensor: ITensor, length: int) -> Any:
    layer = loop.add_loop_output(tensor, CONCATENATE)
    layer.set_input(1, w.fixed(np.int64(length)))
    return layer


@breaks("NL221")
def fail_in_every_run(w: Wrecker) -> Any:
    loop = w.live_loop(lambda loop: not w.around(loop))
    if loop is None:
        return None
    layer, tensor = failing(w, loop)
    w.network.mark_output(tensor)
    return layer


@breaks("NL222")
def fail_in_a_branch(w: Wrecker) -> Any:
    loop = w.live_loop(lambda loop: not w.around(loop))
    if loop is None:
        return None
    layer, tensor = failing(w, loop)
    numbers = w.network.add_cast(tensor, trt.float32).get_output(0)
    total = w.network.add_reduce(numbers, trt.ReduceOperation.SUM, 3, False).get_output(0)
    conditional = w.network.add_if_conditional()
    conditional.set_condition(w.network.add_input("flag", trt.bool, ()))
    taken = conditional.add_input(total).get_output(0)
    w.network.mark_output(conditional.add_output(taken, w.like(taken)).get_output(0))
    return layer


@breaks("NL217")
def count_an_axis_from_the_end(w: Wrecker) -> Any:
    kinds = trt.IIteratorLayer | trt.ILoopOutputLayer
    layer = w.live_layer(kinds, lambda kind: kind.axis >= 0 and getattr(kind, "stacks", True))
    if layer is None:
        return None
    layer.axis -= len(layer.get_input(0).shape) + isinstance(layer, trt.ILoopOutputLayer)
    return layer


@breaks("NL218")
def let_a_recurrence_decide_a_shape(w: Wrecker) -> Any:
    loop = w.live_loop()
    if loop is None:
        return None
    state = w.state(loop, w.fixed(np.int32([1])))
    shuffle = w.network.add_shuffle(w.grow.constant(trt.float32, (1,)))
    shuffle.set_input(1, state)
    made = w.network.add_reduce(shuffle.get_output(0), trt.ReduceOperation.SUM, 1, False).get_output(0)
    w.let_out(made, (*w.around(loop), loop))
    return state.producer


@breaks("NL219")
def count_below_0(w: Wrecker) -> Any:
    loop = w.network.add_loop()
    limit = loop.add_trip_limit(w.fixed(np.int64(-w.grow.between(1, 9))), COUNT)
    w.let_out(w.state(loop, w.grow.constant(trt.int8, (2,))), [loop])
    return limit


# ---------------------------------------------------------------------------- conditionals


@breaks("NL301")
def decide_twice_or_never(w: Wrecker) -> Any:
    condition = w.live_layer(trt.IConditionLayer)
    if condition is not None and w.grow.coin():
        return condition.conditional.set_condition(condition.get_input(0))
    conditional, number = w.network.add_if_conditional(), w.grow.constant(trt.int8, (2,))
    w.network.mark_output(conditional.add_output(number, number).get_output(0))
    return conditional


def choice(w: Wrecker, condition: ITensor, true: ITensor, false: ITensor) -> Any:
    conditional = w.network.add_if_conditional()
    conditional.set_condition(condition)
    layer = conditional.add_output(true, false)
    w.network.mark_output(layer.get_output(0))
    return layer


@breaks("NL302")
def choose_without_inputs(w: Wrecker) -> Any:
    flag, number = w.network.add_input("flag", trt.bool, ()), w.network.add_input("number", trt.float32, (2,))
    layer = choice(w, flag, w.grow.combine(number, number, Op.SUM), number)
    return layer.conditional


@breaks("NL303")
def give_out_an_input_of_a_conditional(w: Wrecker) -> Any:
    conditional = w.network.add_if_conditional()
    conditional.set_condition(w.network.add_input("flag", trt.bool, ()))
    source = w.grow.constant(trt.float32, (2,))
    w.network.mark_output(conditional.add_input(source).get_output(0))
    return w.network.outputs[-1].producer


@breaks("NL304")
def choose_between_two_types(w: Wrecker) -> Any:
    branches = w.grow.constant(trt.float32, (2,)), w.grow.constant(trt.int32, (2,))
    return choice(w, w.fixed(np.bool_(w.grow.coin())), *branches)


@breaks("NL305")
def choose_between_two_ranks(w: Wrecker) -> Any:
    branches = w.grow.constant(trt.float32, (2,)), w.grow.constant(trt.float32, (2, 1))
    return choice(w, w.network.add_input("flag", trt.bool, ()), *branches)


# ---------------------------------------------------------------------------- types


@breaks("NL401")
def give_a_layer_an_input_that_does_not_fit(w: Wrecker) -> Any:
    layer = w.live_layer(trt.IElementWiseLayer)
    if layer is None:
        return None
    other = trt.int8 if layer.get_input(0).dtype is not trt.int8 else trt.uint8
    layer.set_input(1, w.grow.constant(other, tuple(max(1, length) for length in layer.get_input(0).shape)))
    return layer


@breaks("NL402")
def use_float64(w: Wrecker) -> Any:
    tensor = w.one_of(tensor for tensor in w.tensors if tensor.type.is_tensor and tensor.type.dtype not in OWN)
    return tensor and w.network.add_cast(tensor, trt.float64)


@breaks("NL403")
def concatenate_too_many(w: Wrecker) -> Any:
    part = w.one_of(
        tensor for tensor in w.tensors if is_static(tensor) and len(tensor.shape) and not w.scopes.of(tensor)
    )
    return part and w.network.add_concatenation([part] * 10_001)


@breaks("NL404")
def compute_what_tensorrt_does_not(w: Wrecker) -> Any:
    tensor = w.one_of(tensor for tensor in w.tensors if tensor.type.is_tensor and tensor.dtype is trt.float32)
    return tensor and w.network.add_elementwise(tensor, tensor, trt.ElementWiseOperation.MOD)


@breaks("NL220")
def let_a_state_grow(w: Wrecker) -> Any:
    loop = w.live_loop(lambda loop: not w.around(loop))
    if loop is None:
        return None
    state = loop.add_recurrence(w.fixed(np.zeros(1, np.int32)))
    state.keeps_shape = False
    state.set_input(1, w.network.add_concatenation([state.get_output(0), w.fixed(np.ones(1, np.int32))]).get_output(0))
    w.network.mark_output(loop.add_loop_output(state.get_output(0), LAST).get_output(0))
    return state


def fail(x: Any) -> Any:
    raise RuntimeError("not today")


@breaks("NL411")
def let_a_plugin_raise(w: Wrecker) -> Any:
    return w.network.add_plugin_v3([w.one_of(w.plain)], [], trt.JaxPlugin(fail))


@breaks("NL412")
def let_a_plugin_give_too_much(w: Wrecker) -> Any:
    return w.network.add_plugin_v3([w.one_of(w.plain)], [], trt.JaxPlugin(lambda x: (x, x)))


@breaks("NL413")
def add_a_function_of_jax(w: Wrecker) -> Any:
    tensor = w.one_of(tensor for tensor in w.plain if not w.scopes.of(tensor))
    if tensor is None:
        return None
    layer = w.network.add_plugin_v3([tensor], [], trt.JaxPlugin(lambda x: x))
    w.network.mark_output(layer.get_output(0))
    return layer


# ---------------------------------------------------------------------------- what is no pure function


@breaks("NL501", REFUSED_BY_JAX)
def make_a_shape_that_the_run_tells(w: Wrecker) -> Any:
    layer = w.network.add_non_zero(w.network.add_input("found", trt.float32, (2, 3)))
    w.network.mark_output(layer.get_output(0))
    return layer


@breaks("NL502", REFUSED_BY_JAX)
def nest_too_deep(w: Wrecker) -> Any:
    state = w.fixed(np.int32(0))
    loops = [w.network.add_loop() for _ in range(101)]
    states = []
    for loop in loops:
        loop.add_trip_limit(w.fixed(np.int32(1)), COUNT)
        states.append(loop.add_recurrence(state))
        state = states[-1].get_output(0)
    for layer in reversed(states):
        layer.set_input(1, state)
        state = layer.loop.add_loop_output(layer.get_output(0), LAST).get_output(0)
    w.network.mark_output(state)
    return loops[-1]


@breaks("NL503", REFUSED_BY_JAX)
def compute_on_the_host(w: Wrecker) -> Any:
    layer = w.network.add_plugin_v3([w.network.add_input("found", trt.float32, (2, 3))], [], Plugin())
    w.network.mark_output(layer.get_output(0))
    return layer
