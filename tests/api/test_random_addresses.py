"""No address that a script passes ends the process."""

import random

import numpy as np
import pytest

import netloop as trt
from tests.support.memory import PAGE, Pages, mapped, needs_checks

pytestmark = needs_checks
SIZE = 12
"""The bytes of the input, and of the output."""


def network():
    """An input of three floats, its double as an output, and the sum of both as one for an allocator."""
    result = trt.INetworkDefinition()
    x = result.add_input("x", trt.float32, (3,))
    y = result.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0)
    z = result.add_elementwise(x, y, trt.ElementWiseOperation.SUM).get_output(0)
    for name, tensor in {"y": y, "z": z}.items():
        tensor.name = name
        result.mark_output(tensor)
    return result


class Allocator(trt.IOutputAllocator):
    def reallocate_output(self, tensor_name, memory, size, alignment):
        return self.address


def addresses(count, pages, rng):
    """Addresses of every kind: null, odd, huge, freed, of code, of the kernel, at the edges of pages, and any."""
    freed = [np.empty(1 << 22, np.uint8).ctypes.data for _ in range(4)]
    code = [place[0] for place, access in mapped() if "x" in access]
    edges = [pages.writable, pages.read_only, pages.guard]
    kinds = [
        lambda: rng.choice([0, 1, 2, 3, PAGE - 1, PAGE]),
        lambda: rng.getrandbits(47) | 1,
        lambda: rng.getrandbits(47),
        lambda: rng.getrandbits(64),
        lambda: (1 << 64) - 1 - rng.getrandbits(rng.randrange(1, 47)),
        lambda: rng.choice(freed),
        lambda: rng.choice(code) + rng.randrange(PAGE),
        lambda: rng.choice(edges) + rng.randrange(-SIZE, PAGE),
        lambda: rng.choice(edges[1:]) - rng.randrange(1, SIZE),
    ]
    return [rng.choice(kinds)() for _ in range(count)]


def is_of_others(address, own):
    """Whether an address is of memory that is not the test's, and that a run would rightly change."""
    ends = address, address + SIZE - 1
    writable = [place for place, access in mapped() if "w" in access]
    return not all(end in own for end in ends) and any(end in place for end in ends for place in writable)


def check(count):
    rng = random.Random(count)
    context, allocator = trt.compile(network()).create_execution_context(), Allocator()
    x, y = np.arange(3, dtype=np.float32), np.zeros(3, np.float32)
    context.set_output_allocator("z", allocator)
    outcomes = {True: 0, False: 0}
    with Pages() as pages:
        own = range(pages.writable, pages.read_only)
        given = addresses(count, pages, rng)
        for number, address in enumerate(given):
            where = 0 if number % 3 and is_of_others(address, own) else number % 3
            context.set_tensor_address("x", address if where == 0 else x.ctypes.data)
            context.set_tensor_address("y", address if where == 1 else y.ctypes.data)
            allocator.address = address if where == 2 else y.ctypes.data
            outcomes[context.execute_async_v3(0)] += 1
    return outcomes


def test_random_addresses_are_errors_or_memory():
    outcomes = check(300)

    assert outcomes[True] > 10
    assert outcomes[False] > 100


@pytest.mark.slow
def test_many_random_addresses_are_errors_or_memory():
    assert sum(check(10_000).values()) == 10_000
