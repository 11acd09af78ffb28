"""A plugin of pytest that records what each test reaches.

That is: the branches of netloop, of its tests and benchmarks (by coverage.py); the operations of the programs that JAX
lowers, each with its element types and with the optimizations by which it is compiled; and the layers that are added,
each with its element types, enumerations and switches.
"""

import enum
import os
import pickle
import re
import sqlite3
import sys
import time
from collections.abc import Generator, Hashable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import coverage
import pytest
from jax._src.interpreters import mlir

from netloop.model.graph import infer
from tests.redundant_cases.choice import Case
from tests.support.eight_devices import needs_eight_devices
from tests.support.quick_programs import is_quick

ROOT = Path(__file__).parents[2]
FOLDER = "NETLOOP_REACH"
"""The variable of the environment with the folder into which each worker writes its records."""
PROCESSES = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"}
"""The audit events of another process, in which nothing is recorded."""
ABOUT_FILES = "tests/project/"
"""Tests of what files say, which has no branches."""
OPERATION = re.compile(r"(?:stablehlo|chlo)\.(\w+)|custom_call @(\w+)")
ELEMENT_TYPE = re.compile(r"[x<]([a-z]\w*)>")
ELEMENTS_IN_TEXT = 16


class Recorder:
    """The records of one worker."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / os.environ.get("PYTEST_XDIST_WORKER", "main")
        self._coverage = coverage.Coverage(
            data_file=f"{self._file}.coverage",
            branch=True,
            source=[str(ROOT / name) for name in ("netloop", "tests", "benchmarks")],
            config_file=False,
        )
        self._tests: dict[str, tuple[float, bool, frozenset[Hashable]]] = {}
        self._reached: set[Hashable] = set()
        self._has_processes = False
        self._optimizations = ""

    @pytest.hookimpl
    def pytest_collection_finish(self) -> None:
        sys.addaudithook(self._see)
        patch.object(mlir, "lower_jaxpr_to_module", self._lowered(mlir.lower_jaxpr_to_module)).start()
        patch.object(infer, "outputs_with_values", self._added(infer.outputs_with_values)).start()
        self._coverage.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._reached, self._has_processes = set(), False
        self._optimizations = "quick" if is_quick(item) else "as users compile"
        self._coverage.switch_context(item.nodeid)
        before, failed = time.process_time(), item.session.testsfailed
        result = yield
        seconds = time.process_time() - before
        self._coverage.switch_context("")
        has_failed = item.session.testsfailed > failed
        is_elsewhere = self._has_processes or needs_eight_devices(item) or item.nodeid.startswith(ABOUT_FILES)
        is_needed = has_failed or is_elsewhere
        self._tests[item.nodeid] = seconds, is_needed, frozenset(self._reached)
        return result

    @pytest.hookimpl
    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        self._file.with_suffix(".tests").write_bytes(pickle.dumps(self._tests))

    def _see(self, event: str, arguments: Any) -> None:
        self._has_processes |= event in PROCESSES

    def _lowered(self, lower: Any) -> Any:
        def lowered(*arguments: Any, **named: Any) -> Any:
            result = lower(*arguments, **named)
            text = result.module.operation.get_asm(large_elements_limit=ELEMENTS_IN_TEXT)
            for line in text.splitlines():
                if operation := OPERATION.search(line):
                    types = frozenset(ELEMENT_TYPE.findall(line))
                    self._reached.add((operation[1] or operation[2], types, self._optimizations))
            return result

        return lowered

    def _added(self, outputs_with_values: Any) -> Any:
        def added(layer: Any, types: Any, outputs: Any) -> Any:
            switches = {name: value for name, value in vars(layer).items() if isinstance(value, (enum.Enum, bool))}
            element_types = tuple(getattr(type_, "dtype", None) for type_ in types)
            self._reached.add((type(layer).__name__, str(element_types), str(switches)))
            return outputs_with_values(layer, types, outputs)

        return added


def pytest_configure(config: pytest.Config) -> None:
    """Record in each worker, or in the process of all tests."""
    if hasattr(config, "workerinput") or not config.option.numprocesses:
        config.pluginmanager.register(Recorder(Path(os.environ[FOLDER])))


def recorded(folder: Path) -> dict[str, Case]:
    """The records of all workers: each test by its node ID."""
    numbers: dict[Hashable, int] = {}
    reached: dict[str, set[int]] = {}
    for test, branch in _branches(folder):
        reached.setdefault(test, set()).add(numbers.setdefault(branch, len(numbers)))
    cases: dict[str, Case] = {}
    for file in folder.glob("*.tests"):
        for test, (seconds, is_needed, others) in pickle.loads(file.read_bytes()).items():
            places = reached.get(test, set()).union(numbers.setdefault(other, len(numbers)) for other in others)
            cases[test] = Case(seconds, frozenset(places), is_needed)
    return cases


def _branches(folder: Path) -> Iterator[tuple[str, Hashable]]:
    """Each branch that a test takes, with the test; by SQL, as coverage.py would read a file for each test."""
    for file in folder.glob("*.coverage"):
        connection = sqlite3.connect(file)
        rows = connection.execute(
            "select context, file_id, fromno, tono from arc join context on context.id = context_id where context != ''"
        )
        paths = dict(connection.execute("select id, path from file"))
        for test, path, start, end in rows:
            yield test, (paths[path], start, end)
        connection.close()
