"""A builder checks networks and profiles, and logs what it refuses or ignores."""

import pytest

import netloop as trt
from tests.support.builds import doubling_network


def test_network_with_errors_gives_none_with_all_reasons_in_the_log(log):
    builder = trt.Builder(log)
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (3,))
    network.add_loop().add_recurrence(x)

    assert builder.build_serialized_network(network, builder.create_builder_config()) is None
    assert [msg[:5] for msg in log.errors()] == ["NL105", "NL201", "NL203"]


def test_settings_without_effect_are_logged_in_one_line(log):
    builder = trt.Builder(log)
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.FP16)
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 1 << 30)
    config.DLA_core = 1
    builder.build_engine_with_config(doubling_network(builder), config)
    reported = [msg for severity, msg in log.lines if severity is trt.Logger.INFO]

    assert len(reported) == 1
    assert all(name in reported[0] for name in ("FP16", "WORKSPACE", "DLA_core"))


@pytest.mark.parametrize(
    ("name", "lengths", "said"),
    [
        ("xx", (1, 3), "is not an input of the network"),
        ("x", (3,), "has 1 dims for 'x', which has 2 axes"),
        ("x", (1, 4), "has (1, 4) to (1, 4) for 'x', which is float32[-1,3]"),
        ("x", (1, 2), "axis 1 has 3 elements in each call: give this length"),
    ],
)
def test_profile_that_fits_no_input_is_refused(log, name, lengths, said):
    builder = trt.Builder(log)
    network = builder.create_network()
    network.mark_output(network.add_identity(network.add_input("x", trt.float32, (-1, 3))).get_output(0))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape(name, lengths, lengths, lengths)
    config.add_optimization_profile(profile)

    assert builder.build_engine_with_config(network, config) is None
    assert said in log.errors()[-1]
