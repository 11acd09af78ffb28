"""Updates in place that read what they overwrite are found in XLA's text, and compiled anew."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from netloop.compiler.xla_faults.updates import WITHOUT_UPDATE_FAULTS, has_update_fault
from tests.support.devices import only_on_cpus

pytestmark = only_on_cpus("they are faults of XLA's CPU")

X = np.arange(128, dtype=np.float32).reshape(1, 1, 8, 16)
update = lax.dynamic_update_slice


def updated(cache, part, start=1):
    """A cache with a part from ``start`` on, without its axis of the batch."""
    return update(cache, part, (0, 0, start, 0)).reshape(1, 8, 16)


def moved(cache, start):
    part = lax.dynamic_slice(cache, (0, 0, start, 0), (1, 1, 2, 16))
    return updated(cache, jnp.where(part > 20, part, -part), start)


FAULTY = {
    "shifted rows": lambda c, i: updated(c, c[:, :, :7]),
    "shifted rows of some index": lambda c, i: updated(c, c[:, :, :2], i),
    "rows by themselves in reverse": lambda c, i: updated(c, c[:, :, :0:-1]),
    "reshaped before": lambda c, i: update(c.reshape(1, 8, 16), c[0, :, :7], (0, 1, 0)),
    "an index that is read from the array": lambda c, i: updated(c, c[:, :, :7], c[0, 0, 0, 0].astype(np.int32)),
    "two results": lambda c, i: (updated(c, c[:, :, :7]), update(c, c[:, :, :7], (0, 0, 1, 0))),
}
RIGHT = {
    "rows of the same index": lambda c, i: updated(c, c[:, :, 1:] * 2),
    "rows of the same unknown index": moved,
    "other rows": lambda c, i: updated(c, jnp.ones((1, 1, 7, 16), np.float32)),
    "no reshape": lambda c, i: update(c, c[:, :, :7], (0, 0, 1, 0)),
    "no update": lambda c, i: c[:, :, :7],
}
INDEX = np.int32(3)


def compiled(function, options=None):
    return jax.jit(lambda x, i: function(x + 1, i)).lower(X, INDEX).compile(compiler_options=options)


def expected_of(function):
    with jax.disable_jit():
        return jax.tree.leaves(function(X + 1, INDEX))


@pytest.mark.parametrize("name", FAULTY)
def test_update_of_a_reshaped_array_by_its_other_rows_is_a_fault(name: str):
    assert has_update_fault(compiled(FAULTY[name]).as_text())


@pytest.mark.parametrize("name", FAULTY)
def test_operations_by_themselves_are_right(name: str):
    program = compiled(FAULTY[name], WITHOUT_UPDATE_FAULTS)
    assert not has_update_fault(program.as_text())
    for result, expected in zip(jax.tree.leaves(program(X, INDEX)), expected_of(FAULTY[name]), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", RIGHT)
def test_other_updates_are_none(name: str):
    program = compiled(RIGHT[name])
    assert not has_update_fault(program.as_text())
    np.testing.assert_array_equal(program(X, INDEX), expected_of(RIGHT[name])[0])
