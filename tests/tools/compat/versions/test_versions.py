"""The modules of older versions: what each has, and that nothing of it leaks."""

import numpy as np
import pytest

import netloop
from netloop.compat import stand_ins
from netloop.tools.compat.versions import VERSIONS, has_names_of, module_of
from netloop.values.removed_names import REMOVED
from tests.support.log import Log

OF_BUILDS = {"IConvolutionLayer", "IDeconvolutionLayer", "IPoolingLayer", "IPaddingLayer", "IResizeLayer"}
"""Classes whose objects have other names than they do: a network returns these."""


def has(trt, entry):
    owner = getattr(trt, entry.owner) if entry.owner else trt
    return entry.name in dir(owner) or entry.name in getattr(owner, "defaults", ())


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_has_its_names_and_no_older_ones(version):
    trt = module_of(version)
    entries = [entry for entry in REMOVED if entry.owner not in OF_BUILDS]

    names = has_names_of(version)
    missing = [entry for entry in entries if names <= entry.last and not entry.reason and not has(trt, entry)]
    older = [entry for entry in entries if names > entry.last and has(trt, entry)]
    assert (missing, older) == ([], [])


def test_versions_have_their_numbers_and_share_what_did_not_change():
    assert [module_of(version).__version__.split(".")[0] for version in VERSIONS] == ["7", "8", "9", "10", "11"]
    assert all(module_of(version).DataType is netloop.DataType for version in VERSIONS)
    assert all(issubclass(module_of(version).INetworkDefinition, netloop.INetworkDefinition) for version in VERSIONS)
    assert module_of(8).tensorrt is module_of(8)


def test_version_9_has_the_names_of_version_8_and_its_own_number():
    eight, nine = module_of(8), module_of(9)

    assert [has_names_of(9), nine.__version__.split(".")[0], eight.__version__.split(".")[0]] == [8, "9", "8"]
    assert nine.Builder is eight.Builder


def test_unknown_name_of_a_module_is_named():
    with pytest.raises(AttributeError, match=r"^module 'tensorrt' has no attribute 'Bulider'$"):
        assert module_of(8).Bulider
    with pytest.raises(AttributeError, match=r"^module 'tensorrt' has no attribute 'IRNNv2Layer'; TensorRT removed it"):
        assert module_of(10).IRNNv2Layer


@pytest.mark.parametrize("name", ["UffParser", "CaffeParser"])
def test_name_without_meaning_can_be_derived_from_and_is_refused_when_called(name):
    parser = type("Own", (getattr(module_of(7), name),), {})

    with pytest.raises(
        netloop.NetloopError, match=rf"NL676: {name} has no meaning in netloop: its parser reads .*\n.*\n.*OnnxParser"
    ):
        parser()
    assert not hasattr(module_of(10), name)


def test_version_is_that_of_the_context():
    with stand_ins(tensorrt=8):
        import tensorrt as eight
    with stand_ins():
        import tensorrt as eleven

    assert [eight.__version__, eleven.__version__] == ["8.6.1", "11.4.0.106"]
    assert [hasattr(eight.Builder, "build_engine"), hasattr(eleven.Builder, "build_engine")] == [True, False]
    with pytest.raises(ValueError, match=r"one of .* and not 12"), stand_ins(tensorrt=12):
        pass


# ---------------------------------------------------------------------------- enumerations


def test_enumeration_has_the_members_of_today_and_older_ones():
    trt = module_of(8)
    mode = trt.SampleMode

    assert [mode.DEFAULT, mode["DEFAULT"], mode(0)] == [mode.STRICT_BOUNDS] * 3
    assert [trt.SliceMode is mode, trt.ResizeMode is trt.InterpolationMode] == [True, True]
    assert [len(mode), [*mode]] == [len(netloop.SampleMode), [*netloop.SampleMode]]
    assert [isinstance(mode.WRAP, mode), isinstance(trt.ResizeMode.LINEAR, mode), mode.WRAP in mode] == [
        True,
        False,
        True,
    ]
    assert {"DEFAULT", "WRAP"} <= {*mode.__members__} & {*dir(mode)}
    assert trt.ProfilingVerbosity.VERBOSE is netloop.ProfilingVerbosity.DETAILED
    assert trt.EngineCapability.SAFE_GPU is netloop.EngineCapability.SAFETY
    with pytest.raises(AttributeError, match="SampleMode has no member 'WARP'"):
        assert mode.WARP


NUMBERS = {
    7: {"CONVOLUTION": 0, "FULLY_CONNECTED": 1, "RNN": 11, "UNARY": 12, "RNN_V2": 21, "LOOP_OUTPUT": 31, "FILL": 33},
    8: {"CONVOLUTION": 0, "FULLY_CONNECTED": 1, "UNARY": 11, "RNN_V2": 20, "LOOP_OUTPUT": 30, "CAST": 47},
    10: {"CONVOLUTION": 0, "CAST": 1, "UNARY": 11, "IDENTITY": 20, "LOOP_OUTPUT": 29, "DIST_COLLECTIVE": 56},
}
"""Numbers of NvInfer.h of the versions."""


@pytest.mark.parametrize("version", NUMBERS)
def test_kinds_of_layers_have_the_numbers_of_the_version(version):
    kinds = module_of(version).LayerType

    assert {name: int(kinds[name]) for name in NUMBERS[version]} == NUMBERS[version]
    assert [kinds(number).name for number in NUMBERS[version].values()] == [*NUMBERS[version]]
    assert max(map(int, kinds)) == max(NUMBERS[version].values()) == len(kinds) - 1


@pytest.mark.parametrize("version", [7, 8])
def test_listed_layers_have_the_kinds_of_the_version(version):
    trt = module_of(version)
    network = trt.Builder(Log()).create_network(1)
    shuffle = network.add_shuffle(network.add_input("x", trt.float32, (1, 2)))
    axis = network.add_constant((1,), np.zeros(1, np.int32)).get_output(0)
    network.add_unsqueeze(shuffle.get_output(0), axis)
    kind = network[0].type

    assert [kind, int(kind), str(kind)] == [trt.LayerType.SHUFFLE, 21 - version, "LayerType.SHUFFLE"]
    assert shuffle.type == trt.LayerType.SHUFFLE != trt.LayerType.SLICE
    assert {trt.LayerType.SHUFFLE: 1}[shuffle.type] == 1
    assert network[2].type is trt.LayerType.UNSQUEEZE is netloop.LayerType.UNSQUEEZE  # later than the version
    with pytest.raises(AttributeError, match="LayerType has no member 'SHUFLE'"):
        assert trt.LayerType.SHUFLE


@pytest.mark.parametrize(("version", "default"), [(7, 31), (8, 31), (10, 24), (11, 3)])
def test_sources_of_kernels_have_the_numbers_of_the_version(version, default):
    trt = module_of(version)
    config = trt.Builder(Log()).create_builder_config()
    before, source = config.get_tactic_sources(), trt.TacticSource.EDGE_MASK_CONVOLUTIONS
    accepted = config.set_tactic_sources(1 << int(source))

    assert [before, accepted, int(source)] == [default, True, 3 if version < 11 else 0]
    assert config.get_tactic_sources() == 1 << int(source)
    config.reset()
    assert [config.get_tactic_sources(), config.set_tactic_sources(1 << 5)] == [default, False]


def test_settings_of_older_versions_are_recorded_and_said_to_have_no_effect():
    trt, log = module_of(8), Log()
    builder = trt.Builder(log)
    network, config = builder.create_network(1), builder.create_builder_config()
    network.mark_output(network.add_input("x", trt.float32, (1,)))
    flag, feature = trt.BuilderFlag.STRICT_TYPES, trt.PreviewFeature.FASTER_DYNAMIC_SHAPES_0805
    config.max_workspace_size, config.min_timing_iterations = 1 << 20, 2
    config.set_flag(flag)
    config.set_flag(trt.BuilderFlag.ENABLE_TACTIC_HEURISTIC)
    config.clear_flag(trt.BuilderFlag.ENABLE_TACTIC_HEURISTIC)
    config.set_preview_feature(feature, False)
    builder.build_engine(network, config)

    assert [config.get_flag(flag), config.get_flag(trt.BuilderFlag.ENABLE_TACTIC_HEURISTIC)] == [True, False]
    assert [config.get_preview_feature(feature), config.get_flag(trt.BuilderFlag.TF32)] == [False, True]
    assert config.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE) == config.max_workspace_size == 1 << 20
    assert log.infos() == [
        "no effect in netloop, because XLA decides: min_timing_iterations, memory pool WORKSPACE, flag STRICT_TYPES"
    ]


# ---------------------------------------------------------------------------- TensorRT 10 and 7


def test_type_of_the_output_of_an_identity_converts_before_version_11():
    def converted(trt):
        network = trt.Builder(Log()).create_network(1)
        identity = network.add_identity(network.add_input("x", trt.float32, (2,)))
        identity.get_output(0).dtype = trt.bool
        return identity.get_output(0).dtype

    assert [converted(module_of(version)).name for version in VERSIONS] == ["BOOL", "BOOL", "BOOL", "BOOL", "FLOAT"]


def test_registry_has_the_names_of_version_10():
    trt = module_of(10)
    registry = trt.Builder(Log()).get_plugin_registry()

    assert isinstance(registry, trt.IPluginRegistry)
    assert registry.plugin_creator_list == registry.all_creators
    assert registry.get_plugin_creator("nothing", "1") is None
    assert not hasattr(netloop.get_plugin_registry(), "plugin_creator_list")
    assert isinstance(trt.get_builder_plugin_registry(trt.EngineCapability.STANDARD), trt.IPluginRegistry)


@pytest.mark.parametrize("version", [8, 10])
def test_weights_can_be_streamed_by_the_names_of_version_10(version):
    trt, log = module_of(version), Log()
    builder = trt.Builder(log)
    network = builder.create_network(1)
    network.mark_output(network.add_input("x", trt.float32, (1,)))
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    built = builder.build_engine_with_config(network, builder.create_builder_config())
    for engine in (built, trt.Runtime(log).deserialize_cuda_engine(plan)):
        assert isinstance(engine, trt.ICudaEngine)
        assert [engine.minimum_weight_streaming_budget, engine.weight_streaming_budget] == [0, 0]
        engine.weight_streaming_budget = -1
        assert engine.weight_streaming_budget == -1
        assert "no effect in netloop" in log.infos()[-1]
    assert trt.Runtime(log).deserialize_cuda_engine(b"no plan") is None
    assert not hasattr(netloop.ICudaEngine, "weight_streaming_budget")


def test_feature_of_10_16_is_enabled_by_scripts_only():
    trt = module_of(10)
    config, feature = trt.Builder(Log()).create_builder_config(), trt.PreviewFeature.MULTIDEVICE_RUNTIME_10_16
    before = config.get_preview_feature(feature)
    config.set_preview_feature(feature, True)

    assert [before, config.get_preview_feature(feature)] == [False, True]


def test_model_is_parsed_by_the_name_of_version_10():
    trt = module_of(10)
    network = netloop.INetworkDefinition()
    network.mark_output(network.add_identity(network.add_input("x", netloop.float32, (2,))).get_output(0))
    parsed = trt.Builder(Log()).create_network()

    assert trt.OnnxParser(parsed, Log()).parse_with_weight_descriptors(
        netloop.onnx.to_model(network).SerializeToString()
    )
    assert parsed.num_inputs == 1


def test_onnx_models_have_no_int64_in_version_8(tmp_path):
    network = netloop.INetworkDefinition()
    x = network.add_input("x", netloop.int64, (2,))
    y = network.add_elementwise(x, x, netloop.ElementWiseOperation.SUM).get_output(0)
    y.name = "y"
    network.mark_output(y)
    netloop.onnx.save(network, tmp_path / "model.onnx")
    trt = module_of(8)
    builder = trt.Builder(Log())
    network = builder.create_network(1)

    assert trt.OnnxParser(network, Log()).parse_from_file(str(tmp_path / "model.onnx"))
    engine = builder.build_engine(network, builder.create_builder_config())
    assert [engine.get_binding_dtype(0), engine.get_binding_dtype(1)] == [trt.int32] * 2
    np.testing.assert_array_equal(engine({"x": np.int32([1, 2])})["y"], [2, 4])


def test_builder_of_version_7_has_the_settings_of_a_build():
    trt, log = module_of(7), Log()
    builder = trt.Builder(log)
    builder.max_workspace_size, builder.fp16_mode, builder.average_find_iterations = 1 << 20, True, 2
    network = builder.create_network(1)
    network.mark_output(network.add_input("x", trt.float32, (1,)))

    assert builder.build_cuda_engine(network).num_bindings == 1
    assert log.infos() == ["no effect in netloop, because XLA decides: flag FP16, memory pool WORKSPACE"]


def test_selector_of_kernels_is_recorded_before_version_11():
    trt = module_of(10)
    config = trt.Builder(Log()).create_builder_config()
    config.algorithm_selector = type("Own", (trt.IAlgorithmSelector,), {})()

    assert config.ignored() == ["algorithm_selector"]


@pytest.mark.parametrize("version", [8, 10])
def test_starts_of_slices_are_shape_tensors_before_version_11(version):
    def start(trt):
        network = trt.Builder(Log()).create_network(1)
        x, start = network.add_input("x", trt.float32, (4,)), network.add_input("start", trt.int32, (1,))
        layer = network.add_slice(x, (0,), (2,), (1,))
        layer.set_input(1, network.add_identity(start).get_output(0))
        return x.is_shape_tensor, start.is_shape_tensor

    assert [start(module_of(version)), start(netloop)] == [(False, True), (False, False)]
