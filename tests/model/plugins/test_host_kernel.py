"""Plugins of TensorRT's interfaces, in host memory, compared with numpy and torch."""

import functools
import threading

import numpy as np
import pytest

import netloop as trt
from netloop.model.layers.plugin import IPluginV3Layer
from netloop.process.cuda_runtime import LEGACY, MemoryKind
from netloop.values import types
from tests.support import fake_cuda
from tests.support.laws import refuses
from tests.support.networks import CONCATENATE, LAST, Op, cast, combine, constant, counted, counter, last, mark, stacked
from tests.support.peers import needs_torch, torch
from tests.support.plugin_examples import CircularPad, NonZero, Plugin

X = np.arange(6, dtype=np.float32).reshape(2, 3)
PADS = np.int32([3, 1, 1, 2])


@pytest.fixture
def x(network):
    return network.add_input("x", trt.float32, (-1, 3))


def added(network, plugin, *inputs, shape_inputs=()):
    return network.add_plugin_v3(inputs, shape_inputs, plugin).get_output(0)


def runs(network):
    """The two ways to run a network: an engine, and the reference."""
    return trt.compile(network), functools.partial(trt.evaluate, network)


# ---------------------------------------------------------------------------- values


@needs_torch
def test_circular_padding_is_that_of_torch(network, x):
    y = added(network, CircularPad(pads=PADS), x)
    mark(network, y=y)
    wanted = torch.nn.functional.pad(torch.tensor(X)[None, None], (3, 1, 1, 2), mode="circular")[0, 0]

    assert y.shape == (-1, 7)
    for run in runs(network):
        np.testing.assert_array_equal(run({"x": X})["y"], wanted)


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.int32, np.int64, np.bool_])
def test_elements_come_as_they_are(network, dtype):
    kind = types.data_type(dtype)
    mark(network, y=added(network, CircularPad(pads=np.int32([1, 1])), network.add_input("x", kind, (3,))))
    array = np.array([1, 0, 1], dtype)

    for run in runs(network):
        np.testing.assert_array_equal(run({"x": array})["y"], np.pad(array, 1, "wrap"))


@needs_torch
def test_length_that_an_output_tells_is_that_of_torch(network, x):
    layer = network.add_plugin_v3([x], [], NonZero())
    mark(network, places=layer.get_output(0), count=layer.get_output(1))
    array = np.float32([[0, 1, 0], [2, 0, 3]])

    assert layer.get_output(0).shape == (-1, 2)
    for run in runs(network):
        found = run({"x": array})
        np.testing.assert_array_equal(found["places"], torch.nonzero(torch.tensor(array)))
        assert found["count"] == 3
        assert run({"x": 0 * array})["places"].shape == (0, 2)


@pytest.mark.parametrize("told", [7, -1])
def test_length_without_room_is_an_error(network, x, told):
    mark(network, y=added(network, NonZero(told=told), x))

    for run in runs(network):
        with pytest.raises(trt.ExecutionError, match=f"is the length {told}, and memory is reserved for 6"):
            run({"x": X})


def test_shape_inputs_come_as_lengths_and_not_to_enqueue(network):
    class Grid(Plugin):
        def get_output_data_types(self, input_types):
            return [trt.float32]

        def get_output_shapes(self, inputs, shape_inputs, expr_builder):
            return [trt.DimsExprs(shape_inputs[0])]

        def compute(self, y):
            y[...] = np.arange(y.size).reshape(y.shape)

    n = network.add_input("n", trt.int32, (2,))
    mark(network, y=added(network, Grid(), shape_inputs=[n]))

    for run in runs(network):
        np.testing.assert_array_equal(run({"n": np.int32([2, 3])})["y"], X)


def test_workspace_is_memory_to_write_to(network, x):
    class Works(Plugin):
        def get_workspace_size(self, inp, out):
            return 4 * int(np.prod(inp[0].desc.dims))

        def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
            super().enqueue(input_desc, output_desc, inputs, [workspace], 0, stream)
            super().enqueue(output_desc, output_desc, [workspace], outputs, 0, stream)

    mark(network, y=added(network, Works(), x))

    np.testing.assert_array_equal(trt.compile(network)({"x": X})["y"], 4 * X)


class InPlace(Plugin, trt.IPluginV3OneBuildV2):
    """Adds 1 to its input in place, and writes nothing else."""

    alias = 0

    def get_aliased_input(self, output_index):
        return self.alias

    def compute(self, x, y):
        x += 1


def test_output_that_is_an_input_changed_in_place(network, x):
    y = added(network, InPlace(), x)
    mark(network, y=y, both=combine(network, x, y, Op.SUM))

    for run in runs(network):
        found = run({"x": X})
        np.testing.assert_array_equal(found["y"], X + 1)
        np.testing.assert_array_equal(found["both"], 2 * X + 1)


def test_output_without_an_alias_has_memory_of_its_own(network, x):
    mark(network, y=added(network, InPlace(alias=trt.IPluginV3OneBuildV2().get_aliased_input(0)), x))

    np.testing.assert_array_equal(trt.compile(network)({"x": X})["y"], 0 * X)


@pytest.mark.parametrize(("alias", "match"), [(1, "returned 1, which is none of 1 inputs"), (None, "returned None")])
def test_alias_of_no_input_is_an_error(network, x, alias, match):
    mark(network, y=added(network, InPlace(alias=alias), x))

    for run in runs(network):
        with pytest.raises(trt.ExecutionError, match=match):
            run({"x": X})


def test_alias_of_an_input_of_another_type_is_an_error(network, x):
    class Longer(InPlace):
        def get_output_shapes(self, inputs, shape_inputs, expr_builder):
            return [trt.DimsExprs([expr_builder.constant(1)])]

    mark(network, y=added(network, Longer(), x))

    with pytest.raises(
        trt.ExecutionError, match=r"output 0 of Longer is float32\[1\], and shares the memory of float32"
    ):
        trt.compile(network)({"x": X})


def test_plugin_that_writes_to_its_input_spoils_nothing(network, x):
    class Careless(Plugin):
        def compute(self, x, y):
            x[...] = 0

    careless = added(network, Careless(), x)
    mark(network, y=combine(network, x, careless, Op.SUM))

    np.testing.assert_array_equal(trt.compile(network)({"x": X})["y"], X)


# ---------------------------------------------------------------------------- what is asked, and when


def test_plugin_is_prepared_once_for_a_shape(network, x):
    calls = []
    mark(network, y=added(network, Plugin(calls=calls, get_valid_tactics=lambda: [5, 6]), x))
    engine = trt.compile(network)

    for rows in (2, 2, 1):
        engine({"x": X[:rows]})

    prepared = [
        [f"configure [({rows}, 3)] [({rows}, 3)]", "attach", "tactic 5", f"shapes [({rows}, 3)] [({rows}, 3)]"]
        for rows in (2, 1)
    ]
    assert calls == [*prepared[0], "enqueue", "enqueue", *prepared[1], "enqueue"]


def test_nothing_runs_while_a_network_is_built(network):
    calls = []
    y = added(network, Plugin(calls=calls), constant(network, np.int32([1, 2])))
    mark(network, y=y)

    assert y.type.value is None
    trt.check(network)
    assert calls == []


def test_length_that_an_output_tells_is_unknown_when_shapes_change(network, x):
    calls = []
    mark(network, y=added(network, NonZero(calls=calls), x))

    trt.compile(network)({"x": X})

    assert calls[-1] == "shapes [(2, 3)] [(-1, 2), ()]"


def test_plugin_changed_later_changes_no_engine(network, x):
    layer = network.add_plugin_v3([x], [], CircularPad(pads=np.int32([1, 0])))
    mark(network, y=layer.get_output(0))
    engine = trt.compile(network)

    layer.plugin.pads = np.int32([0, 0])

    assert engine({"x": X})["y"].shape == (2, 4)


def test_plugin_given_is_cloned(network, x):
    plugin = Plugin()

    layer = network.add_plugin_v3([x], [], plugin)

    assert type(layer.plugin) is Plugin
    assert layer.plugin is not plugin
    assert layer.type is trt.LayerType.PLUGIN_V3
    assert layer.num_outputs == 1


def test_runs_of_several_threads_do_not_meet(network, x):
    inside, most = [], []

    class Slow(Plugin):
        def compute(self, x, y):
            inside.append(1)
            most.append(len(inside))
            y[...] = x
            inside.pop()

    mark(network, y=added(network, Slow(), x))
    engine = trt.compile(network)
    threads = [threading.Thread(target=lambda: [engine({"x": X}) for _ in range(5)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == [1] * 20


# ---------------------------------------------------------------------------- loops and branches


def test_plugin_runs_once_a_trip(network, x):
    calls = []
    loop = counted(network, 4)
    state = loop.add_recurrence(x)
    doubled = added(network, Plugin(calls=calls), state.get_output(0))
    state.set_input(1, combine(network, doubled, 1, Op.SUM))
    rows = stacked(loop, doubled, constant(network, 4, np.int32), CONCATENATE)
    mark(network, y=last(loop, state.get_output(0)), rows=rows)
    engine = trt.compile(network)

    found = engine({"x": X})

    assert calls.count("enqueue") == 4
    np.testing.assert_array_equal(found["y"], 16 * X + 15)
    np.testing.assert_array_equal(found["rows"], [2 * X, 4 * X + 2, 8 * X + 6, 16 * X + 14])
    np.testing.assert_array_equal(trt.evaluate(network, {"x": X})["rows"], found["rows"])
    (strategy,) = engine.loop_strategies.values()
    assert (strategy.name, strategy.why) == ("host", "a layer in it computes on the host")


def test_plugin_decides_a_while(network):
    class Below(Plugin):
        def get_output_data_types(self, input_types):
            return [trt.bool]

        def compute(self, n, y):
            y[...] = n * n < 50

    loop = network.add_loop()
    number = counter(network, loop)
    loop.add_trip_limit(added(network, Below(), number), trt.TripLimit.WHILE)
    mark(network, y=loop.add_loop_output(number, LAST).get_output(0))

    for run in runs(network):
        assert run({})["y"] == 8


def branches(network, x, plugin):
    """y: what the plugin makes of x if c, else x."""
    branch = network.add_if_conditional()
    branch.set_condition(network.add_input("c", trt.bool, ()))
    made = added(network, plugin, branch.add_input(x).get_output(0))
    mark(network, y=branch.add_output(made, x).get_output(0))


def test_plugin_in_the_branch_not_taken_does_not_run(network, x):
    calls = []
    branches(network, x, Plugin(calls=calls))

    for run in runs(network):
        np.testing.assert_array_equal(run({"x": X, "c": np.bool_(False)})["y"], X)
        assert "enqueue" not in calls
    for run in runs(network):
        np.testing.assert_array_equal(run({"x": X, "c": np.bool_(True)})["y"], 2 * X)
    assert calls.count("enqueue") == 2


class Failing(Plugin):
    """Fails."""

    def compute(self, x, y):
        raise RuntimeError("no luck")


def test_failure_in_the_branch_not_taken_is_none(network, x):
    branches(network, x, Failing())

    for run in runs(network):
        np.testing.assert_array_equal(run({"x": X, "c": np.bool_(False)})["y"], X)


# ---------------------------------------------------------------------------- failures


def test_exception_of_enqueue_is_told_with_its_layer(network, x):
    layer = network.add_plugin_v3([x], [], Failing())
    layer.name = "mine"
    mark(network, y=layer.get_output(0))

    for run in runs(network):
        with pytest.raises(trt.ExecutionError, match="enqueue of Failing raised RuntimeError: no luck") as caught:
            run({"x": X})
        (found,) = caught.value.findings
        assert found.code == "NL411"
        assert found.where == f"{__file__}:{layer.source_location.line}, IPluginV3Layer 'mine'"
        assert isinstance(caught.value.__cause__, RuntimeError)


def test_number_that_enqueue_returns_is_a_failure(network, x):
    class Returns(Plugin):
        def enqueue(self, *_):
            return 3

    mark(network, y=added(network, Returns(), x))

    for run in runs(network):
        with pytest.raises(trt.ExecutionError, match="enqueue of Returns returned 3"):
            run({"x": X})


def test_failure_is_told_only_if_it_is_needed(network, x):
    class FailsAbove9(Plugin):
        def compute(self, x, y):
            if x.max() > 9:
                raise OverflowError
            super().compute(x, y)

    loop = counted(network, 2)
    state = loop.add_recurrence(x)
    state.set_input(1, added(network, FailsAbove9(), state.get_output(0)))
    mark(network, y=stacked(loop, state.get_output(0), constant(network, 2, np.int32), CONCATENATE))

    for run in runs(network):
        np.testing.assert_array_equal(run({"x": X})["y"], [X, 2 * X])


def test_pure_function_has_no_plugin_of_the_host(network, x):
    layer = network.add_plugin_v3([x], [], Plugin())
    mark(network, y=layer.get_output(0))
    function, weights = trt.to_jax(network)

    with pytest.raises(trt.NetworkError) as caught:
        function(weights, {"x": X})

    (found,) = caught.value.findings
    assert found.code == "NL503"
    assert found.at is not None
    assert found.fix == "write it as a netloop.JaxPlugin; netloop.compile runs it as it is"


def const(value):
    return lambda *_: value


EXPR = trt.IExprBuilder()
MISBEHAVING = {
    "no list of types": ({"get_output_data_types": const(trt.float32)}, "not a list with an element for each output"),
    "numpy types": ({"get_output_data_types": const([np.float32])}, "not a list with an element for each output"),
    "too many types": ({"get_output_data_types": const([trt.int32] * 2)}, "returned 2 elements for 1 outputs"),
    "packed elements": ({"get_output_data_types": const([trt.int4])}, "output 0 of Plugin has packed elements"),
    "no shapes": ({"get_output_shapes": const(None)}, "get_output_shapes of Plugin returned None"),
    "a length not set": ({"get_output_shapes": const([trt.DimsExprs(2)])}, "is None, not an IDimensionExpr"),
    "a plain number": (
        {"get_output_shapes": const([[3]])},
        "length 0 of output 0 of Plugin is 3, not an IDimensionExpr",
    ),
    "a negative length": ({"get_output_shapes": const([[EXPR.constant(-2)]])}, "length 0 of output 0 of Plugin is -2"),
    "nine axes": ({"get_output_shapes": const([[EXPR.constant(1)] * 9])}, "has 9 axes, and may have at most 8"),
    "no such size": (
        {"get_output_shapes": const([[EXPR.declare_size_tensor(3, EXPR.constant(1), EXPR.constant(1))]])},
        "declares output 3 as a size, which is not one of its outputs",
    ),
    "a size that is none": (
        {"get_output_shapes": const([[EXPR.declare_size_tensor(0, EXPR.constant(1), EXPR.constant(1))]])},
        "declares output 0 as a size, which is float32[-1]",
    ),
    "a huge output": ({"get_output_shapes": const([[EXPR.constant(2**50)]])}, "a tensor has at most"),
    "a format that is not supported": ({"supports_format_combination": const(False)}, "does not support input 0"),
    "a method that fails": (
        {"get_output_shapes": lambda *_: 1 // 0},
        "get_output_shapes of Plugin raised ZeroDivision",
    ),
}


@pytest.mark.parametrize("name", MISBEHAVING)
def test_plugin_that_breaks_its_interface_is_found(network, x, name):
    own, match = MISBEHAVING[name]
    layer = network.add_plugin_v3([x], [], Plugin(**own))
    mark(network, y=layer.get_output(0))

    (found,) = trt.check(network)

    assert match in str(found)
    assert found.at is layer


RUN_BADLY = {
    "a length left open": ({"get_output_shapes": const([[trt.IDimensionExpr()]])}, "leaves a length unknown"),
    "no workspace": ({"get_workspace_size": const(-1)}, "get_workspace_size of Plugin raised ValueError"),
    "workspace of a word": ({"get_workspace_size": const("1")}, "get_workspace_size of Plugin raised TypeError"),
    "no tactics": ({"get_valid_tactics": const(None)}, "get_valid_tactics of Plugin raised TypeError"),
    "attached to nothing": ({"attach_to_context": const(None)}, "attach_to_context of Plugin returned None"),
    "shapes refused": ({"on_shape_change": lambda *_: 1 // 0}, "on_shape_change of Plugin raised ZeroDivisionError"),
}


@pytest.mark.parametrize("name", RUN_BADLY)
def test_plugin_that_breaks_its_interface_in_a_run_is_told(network, x, name):
    own, match = RUN_BADLY[name]
    mark(network, y=added(network, Plugin(**own), x))

    with pytest.raises(trt.ExecutionError, match=match):
        trt.compile(network)({"x": X})


def test_packed_inputs_are_refused(network):
    refuses(
        IPluginV3Layer(plugin=Plugin()),
        types.TensorType(np.dtype(types.numpy_type(trt.int4)), (2,)),
        match="packed",
    )


def test_shape_input_is_of_integers(network, x):
    layer = IPluginV3Layer(plugin=Plugin(), num_shape_inputs=1)

    refuses(layer, X, X[0], match="a shape input is int32 or int64")


# ---------------------------------------------------------------------------- adding


class Bare(trt.IPluginV3):
    """Overrides nothing."""


WRONG_TYPES = {
    "no plugin": lambda network, x: network.add_plugin_v3([x], [], None),
    "a class": lambda network, x: network.add_plugin_v3([x], [], Plugin),
    "a function": lambda network, x: network.add_plugin_v3([x], [], np.sin),
    "no list": lambda network, x: network.add_plugin_v3(x, [], Plugin()),
    "a layer": lambda network, x: network.add_plugin_v3([network.add_identity(x)], [], Plugin()),
    "no input": lambda network, x: network.add_plugin_v3([None], [], Plugin()),
    "no shape inputs": lambda network, x: network.add_plugin_v3([x], None, Plugin()),
    "a number as shape input": lambda network, x: network.add_plugin_v3([x], [3], Plugin()),
}


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_argument_of_a_wrong_type_is_refused(network, x, name):
    before = network.num_layers
    with pytest.raises(TypeError):
        WRONG_TYPES[name](network, x)

    assert network.num_layers - before == (name == "a layer")


def test_tensor_of_another_network_is_refused(network):
    other = trt.INetworkDefinition().add_input("x", trt.float32, (1,))

    with pytest.raises(trt.NetworkError, match="NL103"):
        network.add_plugin_v3([other], [], Plugin())


BAD_PARTS = {
    "nothing overridden": (Bare(), "clone of Bare raised NotImplementedError: Bare must override clone"),
    "clone of nothing": (Plugin(clone=const(None)), "IPluginV3, not None"),
    "no parts": (Plugin(get_capability_interface=const(None)), "the BUILD capability of Plugin is None"),
    "no outputs": (Plugin(num_outputs=0), "num_outputs of Plugin is 0, but must be 1 or more"),
    "outputs of a word": (Plugin(num_outputs="1"), "num_outputs of Plugin is '1'"),
}


@pytest.mark.parametrize("name", BAD_PARTS)
def test_plugin_without_its_parts_is_refused(network, x, name):
    plugin, match = BAD_PARTS[name]

    with pytest.raises(trt.NetworkError, match=match) as caught:
        network.add_plugin_v3([x], [], plugin)

    assert caught.value.findings[0].where.startswith(__file__)
    assert network.num_layers == 0


def test_plugin_on_tensorrts_own_road(network, x):
    mark(network, y=cast(network, added(network, CircularPad(pads=np.int32([1, 1])), x), trt.float32))
    builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
    config = builder.create_builder_config()
    context = builder.build_engine_with_config(network, config).create_execution_context()
    given, taken = X.copy(), np.zeros((2, 5), np.float32)
    context.set_input_shape("x", X.shape)
    context.set_tensor_address("x", given.ctypes.data)
    context.set_tensor_address("y", taken.ctypes.data)

    assert context.execute_async_v3(0)
    np.testing.assert_array_equal(taken, np.pad(X, ((0, 0), (1, 1)), "wrap"))


def test_addresses_are_valid_for_kernels_too_where_there_is_a_gpu(network, x, monkeypatch):
    cuda = fake_cuda.install(monkeypatch)
    kinds = []

    class Doubling(Plugin):
        def get_workspace_size(self, inputs, outputs):
            return 8

        def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
            kinds.extend(cuda.runtime.location(address).kind for address in (*inputs, *outputs, workspace))
            source, target = (cuda.get(place, np.float32, X.shape) for place in (inputs[0], outputs[0]))
            cuda.fill(LEGACY, outputs[0], source + source + target)

    mark(network, y=added(network, Doubling(), x))

    np.testing.assert_array_equal(trt.compile(network)({"x": X})["y"], 2 * X)
    assert kinds == [MemoryKind.MANAGED] * 3
