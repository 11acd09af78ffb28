"""The branches that an import assumes to be taken."""

from collections.abc import Generator
from contextlib import contextmanager

from netloop.formats.shared.alternatives import Alternatives, Value
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require

MOST_ALTERNATIVES = 6
"""The number of conditions for whose combinations a node may be imported."""


class Assumptions:
    """The branches that are assumed while a node is imported, and those that the network requires by assertions.

    ``fix`` is how the owner of a model decides more conditions.
    """

    def __init__(self, make: FormulaBuilder, fix: str) -> None:
        self._make = make
        self._fix = fix
        self._assumed: dict[ITensor, bool] = {}
        self._doublings = 0
        self._required: list[tuple[dict[ITensor, bool], ITensor, bool]] = []

    @contextmanager
    def assume(self, condition: ITensor, branch: bool) -> Generator[None]:
        """Assume that a condition is true, or false, as in a branch of an If."""
        before = dict(self._assumed)
        self._assumed[condition] = branch
        try:
            yield
        finally:
            self._assumed = before

    @contextmanager
    def alternative(self, condition: ITensor, branch: bool) -> Generator[None]:
        """Assume that a condition is true, or false, while a node is imported once for each.

        Raises:
            LayerError: this is so for too many conditions already: each doubles the number of imports.
        """
        what = f"the ranks that the node reads depend on more than {MOST_ALTERNATIVES} conditions"
        require(self._doublings < MOST_ALTERNATIVES, what, "it is imported for each of their combinations", self._fix)
        self._doublings += 1
        try:
            with self.assume(condition, branch):
                yield
        finally:
            self._doublings -= 1

    def resolve(self, value: Value) -> Value:
        """The value in the branches that are assumed and required; the alternatives that are left otherwise."""
        while isinstance(value, Alternatives):
            branch = self._branch(value.split.condition)
            if branch is None:
                break
            value = value.branches[0 if branch else 1]
        return value

    def _branch(self, condition: ITensor) -> bool | None:
        if condition in self._assumed:
            return self._assumed[condition]
        here = self._assumed.items()
        return next((b for around, c, b in self._required if c is condition and around.items() <= here), None)

    def require(self, condition: ITensor, branch: bool, reason: str) -> None:
        """Assert that a condition is true, or false, wherever the present assumptions hold."""
        make = self._make
        self._required.append((dict(self._assumed), condition, branch))
        holds = condition if branch else make.logical_not(condition)
        for key, is_true in self._assumed.items():
            holds = make.logical_or(make.logical_not(key) if is_true else key, holds)
        make.network.add_assertion(holds, f"otherwise {reason}")
