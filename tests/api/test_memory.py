"""A plan is bytes that can be written to a file."""

import netloop as trt
from tests.support.builds import doubling_network


def test_plan_is_bytes_that_a_file_takes(log, tmp_path):
    builder = trt.Builder(log)
    plan = builder.build_serialized_network(doubling_network(builder), builder.create_builder_config())
    (tmp_path / "engine.plan").write_bytes(plan)

    assert plan.nbytes == (tmp_path / "engine.plan").stat().st_size
    assert plan.dtype is trt.int8


def test_plan_is_printed_as_its_size():
    assert repr(trt.IHostMemory(b"plan")) == "<IHostMemory of 4 bytes>"
