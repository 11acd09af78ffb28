"""A builder config accepts TensorRT's settings and refuses others."""

import json
import pickle

import jax
import numpy as np
import pytest

import netloop as trt
from tests.support import networks
from tests.support.log import Log


def test_setting_of_no_name_is_refused():
    config = trt.Builder(trt.Logger()).create_builder_config()

    with pytest.raises(AttributeError, match="did you mean 'max_aux_streams'"):
        config.max_aux_stream = 3


def test_setting_of_the_wrong_type_is_refused():
    config = trt.Builder(trt.Logger()).create_builder_config()

    with pytest.raises(TypeError, match="max_aux_streams"):
        config.max_aux_streams = "many"


def test_number_may_be_a_member_of_an_enumeration_and_is_kept_as_a_number():
    config = trt.Builder(trt.Logger()).create_builder_config()
    config.quantization_flags = trt.BuilderFlag.REFIT
    config.max_aux_streams = np.int64(3)

    assert (config.quantization_flags, config.max_aux_streams) == (4, 3)
    assert {type(config.quantization_flags), type(config.max_aux_streams)} == {int}


def test_tactic_sources_are_those_that_have_a_bit():
    config = trt.Builder(trt.Logger()).create_builder_config()
    only = 1 << int(trt.TacticSource.JIT_CONVOLUTIONS)

    assert config.get_tactic_sources() == 0b11
    assert config.set_tactic_sources(only)
    assert not config.set_tactic_sources(1 << 20)
    assert config.get_tactic_sources() == only
    assert config.set_tactic_sources(1 << int(trt.TacticSource.CUDNN))
    with pytest.raises(TypeError, match="tactic_sources must be an int"):
        config.set_tactic_sources("CUDNN")


def test_defaults_are_those_that_tools_print():
    """The values that Polygraphy's tests expect of TensorRT 10."""
    config = trt.Builder(trt.Logger()).create_builder_config()

    assert [feature.name for feature in trt.PreviewFeature if config.get_preview_feature(feature)] == [
        "PROFILE_SHARING_0806"
    ]
    assert config.get_memory_pool_limit(trt.MemoryPoolType.TACTIC_SHARED_MEMORY) == 1 << 30
    assert config.get_memory_pool_limit(trt.MemoryPoolType.DLA_LOCAL_DRAM) == 0
    assert [flag.name for flag in trt.BuilderFlag][:2] == ["FP16", "INT8"]


def test_tf32_is_allowed_by_default_as_in_tensorrt():
    settings = config()

    assert [flag.name for flag in trt.BuilderFlag if settings.get_flag(flag)] == ["TF32"]
    assert settings.flags == 1 << 6
    settings.clear_flag(trt.BuilderFlag.TF32)
    assert settings.flags == 0
    assert settings.ignored() == []
    settings.reset()
    assert settings.get_flag(trt.BuilderFlag.TF32)


@pytest.mark.parametrize(("is_set", "precision"), [(True, None), (False, "highest")])
def test_tf32_decides_the_precision_of_products_and_is_kept_in_the_plan(is_set, precision):
    builder = trt.Builder(log := Log())
    settings = builder.create_builder_config()
    (settings.set_flag if is_set else settings.clear_flag)(trt.BuilderFlag.TF32)
    with jax.default_matmul_precision(None):
        built = builder.build_engine_with_config(networks.swap(), settings)
        loaded = trt.Runtime(log).deserialize_cuda_engine(builder.build_serialized_network(networks.swap(), settings))

    for engine in (built, loaded, pickle.loads(pickle.dumps(built))):
        assert engine.build_options.tf32 == is_set
        reported = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
        assert json.loads(reported)["TF32"] == is_set
    assert [built.recipe.precision, loaded.recipe.precision] == [precision] * 2
    assert log.infos() == []


def test_reset_restores_defaults():
    config = trt.Builder(trt.Logger()).create_builder_config()
    config.set_flag(trt.BuilderFlag.REFIT)
    config.builder_optimization_level = 5
    config.reset()

    assert config.changed() == {}


def test_optimization_level_above_the_largest_is_the_largest():
    config = trt.Builder(trt.Logger()).create_builder_config()
    config.builder_optimization_level = 9

    assert config.builder_optimization_level == 5


def config():
    return trt.Builder(Log()).create_builder_config()


def test_there_is_one_build_route():
    settings = config()
    settings.build_route = "any"

    assert settings.all_build_routes == []
    assert settings.ignored() == ["build_route"]


def test_build_that_measures_nothing_leaves_a_timing_cache_as_it_is():
    builder = trt.Builder(log := Log())
    settings = builder.create_builder_config()
    cache = settings.create_timing_cache(b"")
    assert settings.get_timing_cache() is None
    assert settings.set_timing_cache(cache, ignore_mismatch=False)
    builder.build_serialized_network(networks.swap(), settings)

    assert settings.get_timing_cache() is cache
    assert cache.queryKeys() == []
    assert log.infos() == []


def test_timing_cache_that_is_none_is_told_to_be_of_others():
    settings = config()

    assert settings.create_timing_cache(b"a cache of TensorRT") is None
    with pytest.raises(TypeError, match="not None: create_timing_cache returns None for bytes of others"):
        settings.set_timing_cache(None, ignore_mismatch=True)


def test_timing_cache_of_another_machine_is_refused_unless_it_is_ignored():
    settings = config()
    cache = settings.create_timing_cache(b"")
    cache.machines = frozenset({"another"})

    assert not settings.set_timing_cache(cache, ignore_mismatch=False)
    assert settings.get_timing_cache() is None
    assert settings.set_timing_cache(cache, ignore_mismatch=True)
    assert settings.get_timing_cache() is cache


@pytest.mark.parametrize(
    ("value", "error"),
    [("1", TypeError), (True, TypeError), (-1, ValueError), (float("nan"), ValueError), (1e10, ValueError)],
)
def test_tuning_takes_a_number_of_seconds(value, error):
    with pytest.raises(error, match="tuning_seconds"):
        config().tuning_seconds = value
