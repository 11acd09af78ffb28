"""CUDA's ``cuda.core`` on host memory."""

import numpy as np
import pytest

from netloop.compat import stand_ins
from netloop.tools.compat import cuda_core
from netloop.tools.compat.memory import InvalidAddress
from netloop.tools.compat.status import InvalidDevice, InvalidHandle
from netloop.values.diagnostics import NetloopError


def test_both_names_are_the_module():
    with stand_ins():
        import cuda.core.experimental as older
        from cuda import core

    assert core.Device is older.Device is cuda_core.Device


def test_memory_has_an_address_until_it_is_closed():
    buffer = cuda_core.Device(0).allocate(8)
    bytes_of_it = cuda_core.DEVICE.bytes_at(buffer.handle, buffer.size)
    np.testing.assert_array_equal(bytes_of_it, np.zeros(8))
    buffer.close()

    with pytest.raises(InvalidAddress):
        cuda_core.DEVICE.check(buffer.handle, 1)


def test_streams_have_handles_and_events_times():
    device = cuda_core.Device()
    device.set_current()
    stream = device.create_stream()
    begin, end = stream.record(), stream.record()
    stream.wait(begin)
    stream.sync()
    device.sync()

    assert end - begin >= 0
    assert device.create_stream(stream).handle == stream.handle == int(stream)
    assert [device.default_stream.handle, device.arch] == [0, "90"]
    stream.close()
    with pytest.raises(InvalidHandle):
        stream.sync()
    with pytest.raises(InvalidDevice):
        cuda_core.Device(1)


def test_source_of_a_kernel_is_refused():
    options = cuda_core.ProgramOptions(arch="sm_90")
    with pytest.raises(NetloopError, match=r"NL690: the source of a CUDA kernel cannot be compiled"):
        cuda_core.Program("", "c++", options)
    with pytest.raises(AttributeError, match=r"stand-in for cuda.core has no launch"):
        cuda_core.launch  # noqa: B018
