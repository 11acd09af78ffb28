"""The base class of passes, and the notes of what they did."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from netloop.compiler.passes.rewriter import Rewriter

RULE, OFF = "rule", "off"
"""The form of a pass by its rule, and that of a pass that is not applied."""

Forms = Mapping[str, str]
"""The forms of passes by their names; a pass that is not in it has the form by its rule."""


class Pass(ABC):
    """A transformation that makes networks faster and keeps their meaning.

    Attributes:
        name: its name, as in ``netloop.compile(network, passes=[name])``.
        level: the lowest optimization level that uses it.
        rule: what it does and when, for users: the inspector and ``python -m netloop passes`` print it.
        after: the passes that must have run before; a comment gives the reason.
        platforms: the JAX platforms that it is for, of cpu, gpu and tpu; None if it is for all.
        on_host: whether it is applied to networks that run on the host too.
        alternatives: its other forms, if its gain depends on the processor; tuning measures them against the rule.
            Plans and timing caches keep these identifiers, so that a renamed one loses what was tuned.
    """

    name: ClassVar[str]
    level: ClassVar[int]
    rule: ClassVar[str]
    after: ClassVar[tuple[str, ...]] = ()
    platforms: ClassVar[frozenset[str] | None] = None
    on_host: ClassVar[bool] = False
    alternatives: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def rewrite(self, rewriter: Rewriter) -> bool:
        """Rewrite a network.

        Returns:
            Whether anything changed. If not, the next pass sees the network as it was read before.
        """


class Note(NamedTuple):
    """A record of one thing that a pass did.

    Attributes:
        by: the name of the pass.
        what: what it did, with the names of the layers or tensors.
    """

    by: str
    what: str

    def __str__(self) -> str:
        return f"{self.by}: {self.what}"
