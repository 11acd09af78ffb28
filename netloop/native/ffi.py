"""XLA's foreign functions: what their C interface gives to a handler, as code that reads it.

The offsets are those of the structs in ``xla/ffi/api/c_api.h``, which keep their places between versions: new fields
come last, and each struct begins with its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netloop.native.code import INT, Code, ir

API, CONTEXT, STAGE, EXTENSIONS = 16, 24, 32, 8
ARGUMENTS, RESULTS = 40, 80
COUNT, KINDS, VALUES = 16, 24, 32
"""The fields of the arguments, and of the results."""
ELEMENT_TYPE, DATA, RANK, SHAPE = 16, 24, 32, 40
"""The fields of a buffer."""
EXECUTE, METADATA, BUFFER, FLOAT32, INVALID_ARGUMENT, RESOURCE_EXHAUSTED = 3, 1, 1, 11, 3, 8
CREATE_ERROR, SCHEDULE, NUMBER_OF_THREADS = 48, 136, 144
"""The functions of the API."""
VERSION = 0, 1
"""The version of the API that handlers ask for: the first that has all these fields."""


class Handler:
    """The code of a handler: it answers what XLA asks of each, and checks what it is given.

    Attributes:
        code: the code, at the place where the work begins.
        api, context: the addresses of XLA's functions and of the context of the call.
    """

    def __init__(self, module: Any, name: str, ranks: Sequence[Sequence[int]]) -> None:
        self.module = module
        self.code = Code(module, name, 1, returns=True)
        (self.frame,) = self.code.arguments
        self._answer_metadata()
        with self.code.builder.if_then(self.code.differs(self.code.load_number(self.frame, STAGE), EXECUTE)):
            self.code.end(0)
        self.api, self.context = self.code.load(self.frame, API), self.code.load(self.frame, CONTEXT)
        for place, those in zip((ARGUMENTS, RESULTS), ranks, strict=True):
            self._check_buffers(place, those)

    def _answer_metadata(self) -> None:
        """Answer XLA with the version of the API when it asks for it."""
        code = self.code
        extension = code.load(self.frame, EXTENSIONS)
        with code.builder.if_then(code.differs(extension, 0)):
            is_asked = code.builder.not_(code.differs(code.load_number(extension, 8), METADATA))
            with code.builder.if_then(is_asked):
                metadata = code.load(extension, 24)
                for value, offset in zip((*VERSION, 0), (24, 28, 32), strict=True):
                    code.store_number(value, metadata, offset)
                code.end(0)

    def _check_buffers(self, place: int, ranks: Sequence[int]) -> None:
        """Check that the arguments or results are as many float32 arrays as there are ranks, and of these ranks."""
        code, what = self.code, "argument" if place == ARGUMENTS else "result"
        self.require_equal(code.load(self.frame, place + COUNT), len(ranks), f"there are not {len(ranks)} {what}s")
        for position, rank in enumerate(ranks):
            kind = code.load_number(code.load(self.frame, place + KINDS), 4 * position)
            self.require_equal(kind, BUFFER, f"{what} {position} is no array")
            buffer = self.buffer(place, position)
            self.require_equal(
                code.load_number(buffer, ELEMENT_TYPE), FLOAT32, f"{what} {position} is no array of float32"
            )
            self.require_equal(code.load(buffer, RANK), rank, f"{what} {position} has not {rank} axes")
            misaligned = code.builder.and_(code.load(buffer, DATA), code.number(3))
            self.require_equal(misaligned, 0, f"{what} {position} is not aligned")

    def buffer(self, place: int, position: int) -> Any:
        """The address of the description of an array."""
        return self.code.load(self.code.load(self.frame, place + VALUES), 8 * position)

    def data(self, place: int, position: int) -> Any:
        """The address of the elements of an array."""
        return self.code.load(self.buffer(place, position), DATA)

    def length(self, place: int, position: int, axis: int) -> Any:
        """The length of an axis of an array."""
        return self.code.load(self.code.load(self.buffer(place, position), SHAPE), 8 * axis)

    def require_equal(self, a: Any, b: Any, problem: str) -> None:
        """Return an error if two integers differ."""
        self.require(self.code.builder.not_(self.code.differs(a, b)), problem)

    def require(self, condition: Any, problem: str, kind: int = INVALID_ARGUMENT) -> None:
        """Return an error if a condition does not hold."""
        code = self.code
        with code.builder.if_then(code.builder.not_(condition), likely=False):
            given = self._structure([32, 0, self._text(f"netloop's native product: {problem}")])
            code.store_number(kind, given, 24)
            code.end(code.call_address(code.load(code.load(self.frame, API), CREATE_ERROR), given))

    def number_of_threads(self) -> Any:
        """The number of threads of XLA's pool; 1 if it has none."""
        code, answer = self.code, self.code.memory(8)
        code.store(1, answer)
        given = self._structure([32, 0, self.context, answer])
        # an error is what an executable without a pool gives
        self._forget(code.call_address(code.load(self.api, NUMBER_OF_THREADS), given))
        return code.load(answer)

    def schedule(self, function: Any, value: Any) -> Any:
        """Let a thread of XLA's pool call a function with a value; return whether one will."""
        code = self.code
        given = self._structure([40, 0, self.context, code.builder.ptrtoint(function, INT), value])
        error = code.call_address(code.load(self.api, SCHEDULE), given)
        self._forget(error)
        return code.builder.not_(code.differs(error, 0))

    def _forget(self, error: Any) -> None:
        """Destroy an error, if there is one."""
        code = self.code
        with code.builder.if_then(code.differs(error, 0), likely=False):
            code.call_address(code.load(self.api, CREATE_ERROR + 16), self._structure([24, 0, error]))

    def _structure(self, fields: Sequence[Any]) -> Any:
        """The address of a struct of 64-bit fields."""
        code, made = self.code, self.code.memory(8 * len(fields) + 8)
        for position, value in enumerate(fields):
            code.store(value, made, 8 * position)
        return made

    def _text(self, text: str) -> Any:
        """The address of a text."""
        encoded = bytearray(text.encode() + b"\0")
        kind = ir.ArrayType(ir.IntType(8), len(encoded))
        made = ir.GlobalVariable(self.module, kind, self.module.get_unique_name("text"))
        made.linkage, made.global_constant, made.initializer = "internal", True, ir.Constant(kind, encoded)
        return self.code.builder.ptrtoint(made, INT)
