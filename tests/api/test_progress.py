"""A progress monitor follows a build and can cancel it."""

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
