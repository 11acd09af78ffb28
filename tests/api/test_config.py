"""A builder config accepts TensorRT's settings and refuses others."""

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


def test_reset_restores_defaults():
    config = trt.Builder(trt.Logger()).create_builder_config()
    config.set_flag(trt.BuilderFlag.REFIT)
    config.builder_optimization_level = 5
    config.reset()

    assert config.changed() == {}


def config():
    return trt.Builder(Log()).create_builder_config()


def test_there_is_one_build_route():
    settings = config()
    settings.build_route = "any"

    assert settings.all_build_routes == []
    assert settings.ignored() == ["build_route"]


def test_build_leaves_a_timing_cache_as_it_is():
    builder = trt.Builder(log := Log())
    settings = builder.create_builder_config()
    cache = settings.create_timing_cache(b"")
    assert settings.get_timing_cache() is None
    assert settings.set_timing_cache(cache, ignore_mismatch=False)
    builder.build_serialized_network(networks.swap(), settings)

    assert settings.get_timing_cache() is cache
    assert cache.queryKeys() == []
    assert log.infos() == ["no effect in netloop, because XLA decides: timing cache"]
