"""A progress monitor follows a build and can cancel it."""

import numpy as np
import pytest

import netloop as trt
from tests.support.builds import doubling_network


class Monitor(trt.IProgressMonitor):
    def __init__(self, ends_at=None):
        super().__init__()
        self.reported = []
        self.ends_at = ends_at

    def phase_start(self, phase_name, parent_phase, num_steps):
        self.reported.append(("start", phase_name, parent_phase))

    def step_complete(self, phase_name, step):
        return phase_name != self.ends_at

    def phase_finish(self, phase_name):
        self.reported.append(("finish", phase_name))


def parts_of_a_compilation():
    names = ("Optimize", "Load weights", "Trace", "Compile by XLA")
    return [entry for name in names for entry in (("start", name, "Compile"), ("finish", name))]


def test_progress_monitor_receives_every_phase(log):
    builder = trt.Builder(log)
    config = builder.create_builder_config()
    config.progress_monitor = monitor = Monitor()
    builder.build_serialized_network(doubling_network(builder), config)
    whole = "Building engine"

    assert monitor.reported == [
        ("start", whole, None),
        ("start", "Check", whole),
        ("finish", "Check"),
        ("start", "Compile", whole),
        ("finish", "Compile"),
        ("start", "Serialize", whole),
        ("finish", "Serialize"),
        ("finish", whole),
    ]


@pytest.mark.parametrize("phase", ["Check", "Compile"])
def test_progress_monitor_ends_the_build(log, phase):
    builder = trt.Builder(log)
    config = builder.create_builder_config()
    config.progress_monitor = monitor = Monitor(ends_at=phase)

    assert builder.build_serialized_network(doubling_network(builder), config) is None
    assert monitor.reported[-2:] == [("finish", phase), ("finish", "Building engine")]


# ---------------------------------------------------------------------------- netloop.compile


def test_compile_reports_its_phases(network):
    doubling(network, (2,))
    monitor = Monitor()
    engine = trt.compile(network, progress=monitor)

    whole = "Building engine"
    assert monitor.reported == [
        ("start", whole, None),
        ("start", "Compile", whole),
        *parts_of_a_compilation(),
        ("finish", "Compile"),
        ("finish", whole),
    ]
    assert list(engine.profile({"x": np.ones(2, np.float32)})) == ["passes", "load", "trace", "compile", "call"]


def test_calls_with_new_shapes_report_nothing(network):
    doubling(network, (-1,))
    monitor = Monitor()
    engine = trt.compile(network, progress=monitor)
    reported = list(monitor.reported)
    engine({"x": np.ones(3, np.float32)})

    assert monitor.reported == reported
    assert [value for value in reported if value[1] == "Trace"] == []


@pytest.mark.parametrize("phase", ["Optimize", "Compile by XLA", "Compile"])
def test_monitor_cancels_a_compilation(network, phase):
    doubling(network, (2,))

    with pytest.raises(trt.Cancelled, match=phase):
        trt.compile(network, progress=Monitor(ends_at=phase))


def test_monitor_of_another_type_is_refused(network):
    with pytest.raises(TypeError, match="progress must be None or IProgressMonitor"):
        trt.compile(doubling(network, (2,)), progress=print)


def doubling(network, shape):
    x = network.add_input("x", trt.float32, shape)
    y = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0)
    network.mark_output(y)
    return network
