"""Programs of every kind, compiled for an H100 on a machine without one: ``python -m tests.gpu.programs``.

    python -m tests.gpu.programs                       # all sources, and a list of what does not compile
    python -m tests.gpu.programs layers random:20-40   # some of them; of random networks those of these numbers

The programs are compiled in a process of their own, since XLA ends the process for what it does not expect.
"""

import runpy
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

import jax
import numpy as np

import netloop as trt
from benchmarks import h100
from netloop.compiler.lower.loop.kernel import control, conversion
from tests.model.layers.test_example_calls import CALLS, added, value
from tests.support import kernel_cases, networks
from tests.support.laws import AT_A_TIME, Case, lowered_together
from tests.support.layer_cases import all_cases
from tests.support.mortal_cases import outcomes, serve
from tests.support.quick_programs import quick_programs
from tests.support.random_networks import random_network, used

SAMPLES = Path(__file__).parents[2] / "samples"
LEFT_OUT = {
    "ray_data": "it starts processes of Ray",
    "two_processes": "its engines are in other processes",
    "train_char_rnn": "it takes hours",
    "char_rnn": "it needs a file of weights",
    "char_rnn_whole": "it needs a file of weights",
}
"""Samples that are not compiled, each with the reason."""
RANDOM = 200
SECONDS = 300
"""The most seconds for a program."""


class Program(NamedTuple):
    """Something that engines compile programs for.

    Attributes:
        name: its name.
        run: runs it here.
    """

    name: str
    run: Callable[[], object]

    def __str__(self) -> str:
        return self.name


def layers() -> Iterator[Program]:
    """The example call of every method that adds a layer."""
    for method in CALLS:
        network, layer = added(method)
        outputs = [tensor for tensor in layer.outputs if not tensor.is_network_output]
        for tensor in outputs:
            network.mark_output(tensor)
        if outputs:
            inputs = {tensor.name: value(tensor.type) for tensor in network.inputs}
            yield Program(method, lambda network=network, inputs=inputs: trt.compile(network)(inputs))


class Batch(NamedTuple):
    """Cases of the layers' tests, which are one program."""

    cases: list[Case]

    def __str__(self) -> str:
        return f"cases {', '.join(map(str, self.cases))}"[:200]

    def run(self) -> None:
        """Compile the cases together; if that fails, say which of them fail alone."""
        try:
            compile_cases(self.cases)
        except Exception as error:
            failures = [f"{case}: {first_line(other)}" for case in self.cases if (other := failure_of(case))]
            raise ValueError("; ".join(failures) or f"together only: {first_line(error)}") from None


def compile_cases(cases: list[Case]) -> None:
    """Compile cases as one program for the card."""
    with jax.enable_x64(True):
        function, arrays = lowered_together(cases)
        h100.compiled(function, arrays)


def failure_of(case: Case) -> Exception | None:
    try:
        compile_cases([case])
    except Exception as error:
        return error
    return None


def batches() -> Iterator[Batch]:
    """The cases of the layers' tests, in the order of their kinds."""
    cases = sorted(all_cases(), key=lambda case: type(case.layer).__name__)
    yield from (Batch(cases[begin : begin + AT_A_TIME]) for begin in range(0, len(cases), AT_A_TIME))


class Kernels(NamedTuple):
    """The operations of one type that kernels of loops have."""

    dtype: np.dtype

    def __str__(self) -> str:
        return f"kernels of {self.dtype}"

    def run(self) -> None:
        """Compile the operations together; if that fails, say which of them fail alone."""
        cases = kernel_cases.cases_of(self.dtype)
        with patch.object(conversion, "MOST_EQUATIONS", 10_000), patch.object(control, "AHEAD", 1):
            if self.failure_of(cases) is not None:
                failures = [f"{case}: {first_line(error)}" for case in cases if (error := self.failure_of([case]))]
                raise ValueError("; ".join(failures) or "together only")

    def failure_of(self, cases: list[kernel_cases.Case]) -> Exception | None:
        loop, operands = kernel_cases.loop_of(cases), kernel_cases.operands_of(self.dtype)
        try:
            with jax.enable_x64(True):
                h100.compiled(lambda *arrays: conversion.LoopKernel(loop, arrays).called(), *operands)
        except Exception as error:
            return error
        return None


def kernels() -> Iterator[Kernels]:
    """The operations that kernels of loops have, of each type."""
    yield from map(Kernels, kernel_cases.EVERY)


def examples() -> Iterator[Program]:
    """The networks that many tests share."""
    for name, example in networks.EXAMPLES.items():
        yield Program(name, lambda example=example: trt.compile(example.make())(example.inputs))


def samples() -> Iterator[Program]:
    """The samples, run as a user runs them."""
    for path in sorted(SAMPLES.glob("*.py")):
        if path.stem not in LEFT_OUT:
            yield Program(path.stem, lambda path=path: run_sample(path))


def run_sample(path: Path) -> None:
    argv, paths = patch.object(sys, "argv", [str(path)]), patch.object(sys, "path", [str(SAMPLES), *sys.path])
    with TemporaryDirectory() as folder, chdir(folder), redirect_stdout(StringIO()), argv, paths:
        runpy.run_path(str(path), run_name="__main__")


def random_networks(begin: int = 0, end: int = RANDOM) -> Iterator[Program]:
    """Random networks without failures, with the settings under which they are compared with the reference."""
    for seed in range(begin, end):
        yield Program(f"random_network({seed}, False)", lambda seed=seed: run_random(seed))


def run_random(seed: int) -> None:
    grown = random_network(seed, False)
    with used(grown.settings):
        trt.compile(grown.network)(grown.inputs)


SOURCES: dict[str, Callable[[], Iterable[Any]]] = {
    "layers": layers,
    "cases": batches,
    "kernels": kernels,
    "examples": examples,
    "samples": samples,
    "random": random_networks,
}


def first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip()}".splitlines()[0][:300]


def outcome(program: Program | Batch | Kernels) -> str:
    """The number of programs that were compiled for the card, or the first line of the error."""
    try:
        with h100.programs_are_compiled_for_it() as compiled, quick_programs():
            program.run()
    except Exception as error:
        return f"FAILED {first_line(error)}"
    return f"{len(compiled) + (not isinstance(program, Program))} programs"


def require_source(word: str) -> None:
    """Check a word of the command line, and add the source that ``random:20-40`` stands for."""
    name, _, numbers = word.partition(":")
    if name not in SOURCES:
        raise SystemExit(f"there is no source {name!r}; there are {', '.join(SOURCES)}")
    if numbers:
        begin, _, end = numbers.partition("-")
        SOURCES[word] = lambda: random_networks(int(begin), int(end))


def main(words: list[str]) -> int:
    """Compile the programs of some sources, print what does not compile, and return the exit status."""
    if not h100.is_there():
        raise SystemExit('the CUDA plugin of JAX is not installed: pip install "jax[cuda13]"')
    bad = 0
    for source in words or [*SOURCES]:
        require_source(source)
        began, counts = time.monotonic(), list[int]()
        for name, text in outcomes("tests.gpu.programs", source, seconds=SECONDS, starting=SECONDS):
            counts.append(int(text.split()[0]) if text[:1].isdigit() else 0)
            if text.startswith(("FAILED", "DIED")):
                bad += 1
                print(f"{source}: {name}\n    {text}", flush=True)
        seconds = time.monotonic() - began
        print(f"{source}: {len(counts)} compile to {sum(counts)} programs in {seconds:.0f} s", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[2].isdigit():
        require_source(sys.argv[1])
        serve(SOURCES, outcome, memory=None)
    else:
        sys.exit(main(sys.argv[1:]))
