"""Programs for GPUs that XLA's kernels in Triton cannot hold are compiled without these."""

import jax
import pytest

from netloop.compiler.xla_faults.triton import DISABLED, PASS, REFUSED, compiled


class Refused:
    """Stands for a lowered program that XLA refuses, with its message, unless a pass is disabled."""

    def __init__(self, message: str, hidden_by: str = PASS) -> None:
        self.message, self.hidden_by, self.tried = message, hidden_by, []

    def compile(self, compiler_options):
        self.tried.append(compiler_options)
        if self.hidden_by in (compiler_options or {}).get(DISABLED, ""):
            return "program"
        raise jax.errors.JaxRuntimeError(self.message)


@pytest.mark.parametrize(
    ("options", "then"),
    [
        (None, {DISABLED: PASS}),
        ({DISABLED: "fusion"}, {DISABLED: f"fusion,{PASS}"}),
        ({"xla_other": 1}, {"xla_other": 1, DISABLED: PASS}),
    ],
)
def test_program_that_triton_refuses_is_compiled_without_it(options, then):
    lowered = Refused(f"INTERNAL: {REFUSED}. Context: ...")

    assert compiled(lowered, options) == "program"
    assert lowered.tried == [options, then]


@pytest.mark.parametrize("message", ["RESOURCE_EXHAUSTED: Out of memory", f"INTERNAL: {REFUSED}"])
def test_other_errors_and_those_that_stay_are_raised(message):
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        compiled(Refused(message, hidden_by="nothing"), None)
