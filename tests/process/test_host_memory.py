"""Host memory is read and written at any address: a wrong one is an error."""

import ctypes
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from netloop.process.host_memory import HOST_MEMORY, SMALL, BadAddress, HostMemory
from tests.support.memory import PAGE, Pages, needs_checks

pytestmark = needs_checks
ROOT = Path(__file__).parents[2]
FLOAT = np.dtype(np.float32)


@pytest.mark.parametrize("count", [0, 1, SMALL // 4, SMALL // 4 + 1, 1 << 20])
def test_array_is_read_and_written_at_an_address(count):
    source, target = np.random.default_rng(0).random(count, np.float32), np.zeros(count, np.float32)
    read = HOST_MEMORY.read(source.ctypes.data, FLOAT, (count,))
    HOST_MEMORY.write(target.ctypes.data, source)

    np.testing.assert_array_equal(read, source)
    np.testing.assert_array_equal(target, source)
    assert not np.shares_memory(read, source)


def test_array_that_is_read_is_row_major_and_has_its_shape():
    source = np.arange(6, dtype=np.int64).reshape(2, 3)

    np.testing.assert_array_equal(HOST_MEMORY.read(source.ctypes.data, source.dtype, (2, 3)), source)
    assert HOST_MEMORY.read(source.ctypes.data, source.dtype, ()).shape == ()


def test_transposed_array_is_written_in_its_own_order():
    target = np.zeros((3, 2), np.float32)
    HOST_MEMORY.write(target.ctypes.data, np.arange(6, dtype=np.float32).reshape(2, 3).T)

    np.testing.assert_array_equal(target, [[0, 3], [1, 4], [2, 5]])


@pytest.mark.parametrize("size", [4, 1 << 20])
@pytest.mark.parametrize("address", [0, 1, 4096, 2**47 - 4, 2**47, 2**63, 2**64 - 4096, 2**64 - 1])
def test_address_without_memory_is_an_error(address, size):
    with pytest.raises(BadAddress, match=f"{size} bytes at {address:#x} are not memory .* that can be read"):
        HOST_MEMORY.read(address, FLOAT, (size // 4,))
    with pytest.raises(BadAddress, match="that can be written"):
        HOST_MEMORY.write(address, np.zeros(size // 4, np.float32))


def test_memory_that_ends_too_early_is_an_error_that_says_where():
    with Pages() as pages, pytest.raises(BadAddress, match="only the first 8 of the 12 bytes"):
        HOST_MEMORY.read(pages.guard - 8, FLOAT, (3,))


@pytest.mark.parametrize("count", [2, SMALL])
def test_memory_that_ends_too_early_is_found_in_any_size(count):
    with Pages() as pages:
        with pytest.raises(BadAddress):
            HOST_MEMORY.read(pages.guard - 4, FLOAT, (count,))
        with pytest.raises(BadAddress):
            HOST_MEMORY.write(pages.read_only - 4, np.zeros(count, np.float32))


def test_read_only_memory_is_not_written():
    with Pages() as pages, pytest.raises(BadAddress, match="can be read only") as raised:
        HOST_MEMORY.write(pages.read_only, np.zeros(3, np.float32))

    assert raised.value.fix == "pass the address of memory that can be written"


def test_code_is_not_written():
    code = ctypes.cast(ctypes.pythonapi.Py_IncRef, ctypes.c_void_p).value

    with pytest.raises(BadAddress, match="can be read only"):
        HOST_MEMORY.write(code, np.zeros(1, np.float32))


def test_memory_is_checked_without_a_copy():
    with Pages() as pages:
        HOST_MEMORY.check(pages.writable, 2 * PAGE)
        with pytest.raises(BadAddress, match=f"only the first {2 * PAGE} of the {3 * PAGE} bytes"):
            HOST_MEMORY.check(pages.writable, 3 * PAGE)


@pytest.mark.parametrize("address", [-8, 2**64])
def test_number_that_is_no_address_is_an_error(address):
    with pytest.raises(BadAddress, match="there are no 4 bytes"):
        HOST_MEMORY.check(address, 4)


def test_threads_read_at_the_same_time():
    sources = [np.full(1000, number, np.float32) for number in range(4)]
    wrong = []

    def read(source):
        for _ in range(500):
            if not np.array_equal(HOST_MEMORY.read(source.ctypes.data, FLOAT, (1000,)), source):
                wrong.append(source[0])

    threads = [threading.Thread(target=read, args=(source,)) for source in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []


FORK = """
import os
import numpy as np
from netloop.process.host_memory import HOST_MEMORY
array = np.zeros(1, np.float32)
child = os.fork()
if not child:
    array[0] = 7
    os._exit(int(HOST_MEMORY.read(array.ctypes.data, array.dtype, (1,))[0]))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_fork_reads_its_own_memory():
    command = [sys.executable, "-c", FORK]

    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60).stdout == "7\n"


@pytest.mark.parametrize("count", [3, SMALL])
def test_memory_is_copied_without_checks_where_the_system_refuses_them(count, monkeypatch):
    memory = HostMemory()
    source, target = np.ones(count, np.float32), np.zeros(count, np.float32)
    for name in ("_read", "_write", "_read_small", "_write_small"):
        monkeypatch.setattr(memory, name, lambda *arguments: -1)
    memory.write(target.ctypes.data, source)

    assert not memory.is_checked
    np.testing.assert_array_equal(memory.read(target.ctypes.data, FLOAT, (count,)), source)
