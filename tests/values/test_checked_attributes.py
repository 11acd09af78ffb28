"""Objects of the API refuse unknown attributes and invalid values."""

import numpy as np
import pytest

import netloop as trt
from netloop.values.checked_attributes import LONGEST, seconds
from netloop.values.removed_names import REMOVED, unknown


def engine():
    network = trt.INetworkDefinition()
    network.mark_output(network.add_input("x", trt.float32, ()))
    return trt.compile(network)


def network():
    return trt.INetworkDefinition()


def builder():
    return trt.Builder(trt.Logger())


def layer():
    return network().add_fill((2,), trt.FillOperation.LINSPACE)


HOLDERS = {
    "ITensor": (lambda: network().add_input("x", trt.float32, ()), "locaton", "location"),
    "INetworkDefinition": (network, "nmae", "name"),
    "ILoop": (lambda: network().add_loop(), "nmae", "name"),
    "IIfConditional": (lambda: network().add_if_conditional(), "nmae", "name"),
    "ICudaEngine": (engine, "error_recoder", "error_recorder"),
    "Builder": (builder, "max_thread", "max_threads"),
    "Runtime": (lambda: trt.Runtime(trt.Logger()), "max_thread", "max_threads"),
    "Refitter": (lambda: trt.Refitter(engine(), trt.Logger()), "weight_validation", "weights_validation"),
    "EngineInspector": (lambda: engine().create_engine_inspector(), "context", None),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_unknown_attribute_is_refused_with_the_one_that_was_meant(name):
    make, wrong, meant = HOLDERS[name]

    with pytest.raises(AttributeError, match=rf"^{name} has no attribute '{wrong}' to set") as caught:
        setattr(make(), wrong, 1)
    assert meant is None or f"did you mean {meant!r}?" in str(caught.value)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (HOLDERS["ITensor"][0], "uses"),
        (HOLDERS["ITensor"][0], "is_network_output"),
        (network, "layers"),
        (network, "flags"),
        (network, "num_layers"),
        (network, "add_loop"),
        (HOLDERS["ILoop"][0], "layers"),
        (engine, "network"),
    ],
)
def test_attribute_that_the_library_keeps_cannot_be_set(make, name):
    with pytest.raises(AttributeError, match=f"'{name}' of .* cannot be set"):
        setattr(make(), name, None)


@pytest.mark.parametrize(
    ("ask", "instead"),
    [
        (lambda: network().add_fully_connected, "add_matrix_multiply"),
        (lambda: engine().num_bindings, "num_io_tensors"),
        (lambda: engine().create_execution_context().execute_async_v2, "execute_async_v3"),
        (lambda: builder().build_cuda_engine, "build_serialized_network"),
        (lambda: setattr(builder().create_builder_config(), "max_workspace_size", 1 << 30), "set_memory_pool_limit"),
        (lambda: trt.ResizeMode, "InterpolationMode"),
    ],
)
def test_name_that_tensorrt_dropped_is_told_with_what_took_its_place(ask, instead):
    with pytest.raises(
        AttributeError, match=rf"has no attribute '\w+'( to set)?; TensorRT removed it; use .*{instead}"
    ):
        ask()


def test_no_name_that_tensorrt_dropped_is_there():
    there = [entry for entry in REMOVED if has(getattr(trt, entry.owner) if entry.owner else trt, entry.name)]

    assert there == []


def has(owner, name):
    return name in dir(owner) or name in getattr(owner, "ATTRIBUTES", ())


def test_message_about_a_dropped_name_says_how_the_script_runs_as_it_is():
    with pytest.raises(AttributeError, match=r"; or python -m netloop.compat --tensorrt 8 SCRIPT runs it as it is$"):
        assert engine().num_bindings


def test_message_about_a_name_without_meaning_offers_no_run():
    assert unknown("module 'tensorrt'", "UffParser").endswith("use OnnxParser, after a conversion of the model to ONNX")


def test_dropped_member_of_an_enumeration_is_named_with_its_replacement():
    with pytest.raises(AttributeError, match="no member 'STRICT_TYPES'; TensorRT removed it; use the types"):
        assert trt.BuilderFlag.STRICT_TYPES


def test_name_that_others_have_too_is_known_of_its_owner_only():
    assert "TensorRT" in unknown("IPoolingLayer", "stride")
    assert "TensorRT" not in unknown("ITopKLayer", "stride")


@pytest.mark.parametrize("name", ["add_elementwis", "__cuda_array_interface__"])
def test_name_that_never_was_is_told_as_python_does(name):
    with pytest.raises(AttributeError, match=f"^INetworkDefinition has no attribute '{name}'$") as caught:
        getattr(network(), name)
    assert caught.value.name == name


@pytest.mark.parametrize(
    "make", [network, *(HOLDERS[name][0] for name in ("ITensor", "ILoop", "IIfConditional")), layer]
)
def test_name_is_text_that_can_be_written(make):
    with pytest.raises(ValueError, match="half of a surrogate pair"):
        make().name = "\ud800"


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        (HOLDERS["ITensor"][0], "name", 3),
        (HOLDERS["ITensor"][0], "location", 1),
        (HOLDERS["ITensor"][0], "allowed_formats", "all"),
        (HOLDERS["ITensor"][0], "broadcast_across_batch", None),
        (network, "name", None),
        (HOLDERS["ILoop"][0], "name", b"loop"),
        (HOLDERS["IIfConditional"][0], "name", 7),
        (engine, "error_recorder", 1),
        (builder, "max_threads", True),
        (lambda: builder().create_builder_config(), "progress_monitor", print),
        (lambda: builder().create_builder_config(), "flags", "REFIT"),
        (lambda: engine().create_execution_context(), "profiler", 1),
    ],
)
def test_value_of_a_wrong_type_is_refused_by_the_name_of_its_attribute(make, name, value):
    with pytest.raises(TypeError, match=name):
        setattr(make(), name, value)


@pytest.mark.parametrize(("name", "value"), [("builder_optimization_level", -1), ("flags", -1)])
def test_setting_of_a_build_outside_of_its_range_is_refused(name, value):
    config = builder().create_builder_config()

    with pytest.raises(ValueError, match=rf"IBuilderConfig\.{name} must be"):
        setattr(config, name, value)
    assert config.changed() == {}


def test_no_threads_are_refused():
    with pytest.raises(ValueError, match=r"Builder\.max_threads must be at least 1, not 0"):
        builder().max_threads = 0


def test_memory_pool_of_negative_size_is_refused():
    with pytest.raises(ValueError, match="pool_size must be at least 0, not -1"):
        builder().create_builder_config().set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, -1)


@pytest.mark.parametrize("ranks", [0, -3])
def test_layer_runs_on_one_rank_at_least(ranks):
    made = network()
    layer = made.add_identity(made.add_input("x", trt.float32, ()))

    with pytest.raises(ValueError, match=rf"IIdentityLayer\.num_ranks must be at least 1, not {ranks}"):
        layer.num_ranks = ranks


def test_name_of_an_input_is_checked_where_it_is_added():
    with pytest.raises(ValueError, match="at most 4095 bytes"):
        network().add_input("é" * 2048, trt.float32, ())


def test_what_is_known_can_be_set():
    made = network()
    x = made.add_input("x", trt.float32, (-1,))
    x.name, x.shape, x.location = "y", (3,), trt.TensorLocation.HOST
    made.name, made.add_loop().name = "net", "loop"
    made.mark_output(made.add_identity(x).get_output(0))

    assert (x.name, x.shape, x.location, made.name) == ("y", (3,), trt.TensorLocation.HOST, "net")
    assert trt.compile(made)({"y": np.ones(3, np.float32)})


def test_seconds_have_bounds():
    accepted = [seconds()("delay", number) for number in (0, 1.5, LONGEST)]

    assert accepted == [0.0, 1.5, LONGEST]
    assert seconds(endless=True)("timeout", float("inf")) == float("inf")
    for value in (-1, float("nan"), float("inf"), 1e10, 1e308, LONGEST + 1, 10**400):
        with pytest.raises(ValueError, match=r"delay must be at least 0 and at most 4194304 seconds \(48 days\), not"):
            seconds()("delay", value)
    with pytest.raises(ValueError, match="or inf for no limit, not -1"):
        seconds(endless=True)("timeout", -1)
    with pytest.raises(ValueError, match="seconds must be positive and at most"):
        seconds(positive=True)("seconds", 0)
    for value in (None, True, "1", 1j, [1]):
        with pytest.raises(TypeError, match="delay must be a number, not"):
            seconds()("delay", value)


@pytest.mark.parametrize(
    "listed", [trt.get_plugin_registry(), builder(), trt.IBuilderConfig(), trt.Runtime(trt.Logger())]
)
def test_dir_has_the_names_of_tensorrt_and_not_how_objects_work(listed):
    names = {name for name in dir(listed) if not name.startswith("__")}

    assert "error_recorder" in names or "avg_timing_iterations" in names
    assert all(name[0] != "_" and not name.isupper() for name in names)
    assert not {"changed", "defaults"} & names
