"""XLA's foreign functions: a handler's view of a call.

The offsets are those of the structs in ``xla/ffi/api/c_api.h``, which keep their places between versions: new fields
come last, and each struct begins with its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from netloop.compiler.machine_code.code import INT, FunctionCode, ir
from netloop.compiler.machine_code.processor import BFLOAT16, FLOAT32

API, CONTEXT, STAGE, EXTENSIONS = 16, 24, 32, 8
ARGUMENTS, RESULTS = 40, 80
COUNT, KINDS, VALUES = 16, 24, 32
"""The fields of the arguments, and of the results."""
ELEMENT_TYPE, DATA, RANK, SHAPE = 16, 24, 32, 40
"""The fields of a buffer."""
EXECUTE, METADATA, BUFFER, INVALID_ARGUMENT, RESOURCE_EXHAUSTED = 3, 1, 1, 3, 8
CREATE_ERROR, DESTROY_ERROR, SCHEDULE, NUMBER_OF_THREADS = 48, 64, 136, 144
"""The functions of the API."""
VERSION = 0, 1
"""The version of the API that the handler asks for: the first that has all these fields."""
INTEGERS = np.dtype(np.int32)
XLA_TYPES = {INTEGERS: 4, FLOAT32: 11, BFLOAT16: 16}
"""XLA's numbers of element types."""

Buffer = tuple["np.dtype[Any]", int]
"""The element type of an array and its least number of elements."""
PROBLEMS = "is no array", "is not of its element type", "is too small", "is not aligned"
"""The problems of an array, in the order in which they are looked for."""


class Handler:
    """The code of a handler: it answers XLA's questions, and checks its arrays.

    Attributes:
        code: the code, at the place where the work begins.
        api, context: the addresses of XLA's functions and of the context of the call.

    What is done for every array is a function that the handler calls: written out for each, it would be most of a
    kernel's code, and of the time in which LLVM compiles it.
    """

    def __init__(self, code: FunctionCode, arguments: Sequence[Buffer], results: Sequence[Buffer]) -> None:
        """Begin the code of a handler for some arrays."""
        self.code = code
        (self.frame,) = code.arguments
        self._error, self._elements = _error(code.module), _elements(code.module)
        self._answer_metadata()
        with code.builder.if_then(code.builder.not_(code.equals(code.load_number(self.frame, STAGE), EXECUTE))):
            code.end(0)
        self.api, self.context = code.load(self.frame, API), code.load(self.frame, CONTEXT)
        check = _check(code.module, self._error, self._elements)
        for place, buffers in ((ARGUMENTS, arguments), (RESULTS, results)):
            self._check_buffers(check, place, buffers)

    def _answer_metadata(self) -> None:
        """Answer XLA with the version of the API when it asks for it."""
        code = self.code
        extension = code.load(self.frame, EXTENSIONS)
        with (
            code.builder.if_then(code.builder.not_(code.equals(extension, 0))),
            code.builder.if_then(code.equals(code.load_number(extension, 8), METADATA)),
        ):
            metadata = code.load(extension, 24)
            for value, offset in zip((*VERSION, 0), (24, 28, 32), strict=True):
                code.store_number(value, metadata, offset)
            code.end(0)

    def _check_buffers(self, check: Any, place: int, buffers: Sequence[Buffer]) -> None:
        code, what = self.code, "argument" if place == ARGUMENTS else "result"
        count = code.load(self.frame, place + COUNT)
        self.require(code.equals(count, len(buffers)), f"there are not {len(buffers)} {what}s")
        for position, (kind, least) in enumerate(buffers):
            texts = [self._text(f"{what} {position} {problem}") for problem in PROBLEMS]
            wanted = XLA_TYPES[kind], least, kind.itemsize - 1
            error = code.call(check, self.frame, code.add(self.frame, place), position, *wanted, *texts)
            with code.builder.if_then(code.builder.not_(code.equals(error, 0)), likely=False):
                code.end(error)

    def _buffer(self, place: int, position: int) -> Any:
        """The address of the description of an array."""
        return self.code.load(self.code.load(self.frame, place + VALUES), 8 * position)

    def size(self, place: int, position: int) -> Any:
        """The number of elements of an array."""
        return self.code.call(self._elements, self._buffer(place, position))

    def data(self, place: int, position: int) -> Any:
        """The address of the elements of an array."""
        return self.code.load(self._buffer(place, position), DATA)

    def require(self, condition: Any, problem: str, kind: int = INVALID_ARGUMENT) -> None:
        """Return an error if a condition does not hold."""
        code = self.code
        with code.builder.if_then(code.builder.not_(condition), likely=False):
            code.end(code.call(self._error, self.frame, self._text(problem), kind))

    def number_of_threads(self) -> Any:
        """The number of threads of XLA's pool; 1 if it has none."""
        code, answer = self.code, self.code.memory(8)
        code.store(1, answer)
        # an error is what an executable without a pool gives
        question = _structure(code, [32, 0, self.context, answer])
        self._forget(code.call_address(code.load(self.api, NUMBER_OF_THREADS), question))
        return code.load(answer)

    def schedule(self, function: Any, value: Any) -> Any:
        """Let a thread of XLA's pool call a function with a value; return whether one will."""
        code = self.code
        task = _structure(code, [40, 0, self.context, code.builder.ptrtoint(function, INT), value])
        error = code.call_address(code.load(self.api, SCHEDULE), task)
        self._forget(error)
        return code.equals(error, 0)

    def _forget(self, error: Any) -> None:
        """Destroy an error, if there is one."""
        code = self.code
        with code.builder.if_then(code.builder.not_(code.equals(error, 0)), likely=False):
            code.call_address(code.load(self.api, DESTROY_ERROR), _structure(code, [24, 0, error]))

    def _text(self, text: str) -> Any:
        """The address of the text of an error."""
        module, encoded = self.code.module, bytearray(f"netloop's kernel: {text}\0".encode())
        kind = ir.ArrayType(ir.IntType(8), len(encoded))
        variable = ir.GlobalVariable(module, kind, module.get_unique_name("text"))
        variable.linkage, variable.global_constant, variable.initializer = "internal", True, ir.Constant(kind, encoded)
        return self.code.builder.ptrtoint(variable, INT)


def _structure(code: FunctionCode, fields: Sequence[Any]) -> Any:
    """The address of a struct of 64-bit fields."""
    structure = code.memory(8 * len(fields))
    for position, value in enumerate(fields):
        code.store(value, structure, 8 * position)
    return structure


def _error(module: Any) -> Any:
    """The function that makes an error: of the frame of a call, the address of the text, and XLA's number of a kind."""
    code = FunctionCode(module, "error", 3, returns=True)
    frame, text, kind = code.arguments
    # the kind has 32 bits, and what fills the struct follows
    error = _structure(code, [32, 0, text, kind])
    code.end(code.call_address(code.load(code.load(frame, API), CREATE_ERROR), error))
    return code.function


def _elements(module: Any) -> Any:
    """The function that counts the elements of an array: of the address of its description."""
    code = FunctionCode(module, "elements", 1, returns=True)
    (buffer,), size = code.arguments, code.memory(8)
    code.store(1, size)
    with code.counting(0, code.load(buffer, RANK)) as axis:
        length = code.load(code.load(buffer, SHAPE), code.multiply(axis, 8))
        code.store(code.multiply(code.load(size), length), size)
    code.end(code.load(size))
    return code.function


def _check(module: Any, error: Any, elements: Any) -> Any:
    """The function that checks an array: of the frame, the arrays, a position, what is wanted, and texts of PROBLEMS.

    What is wanted are XLA's number of the element type, the least number of elements, and the bits of the address that
    have to be 0. The result is an error, or 0.
    """
    code = FunctionCode(module, "check", 6 + len(PROBLEMS), returns=True)
    frame, arrays, position, element_type, least, odd_bits, *texts = code.arguments
    kind = code.load_number(code.load(arrays, KINDS), code.multiply(position, 4))
    problem = iter(texts)

    def require(condition: Any) -> None:
        with code.builder.if_then(code.builder.not_(condition), likely=False):
            code.end(code.call(error, frame, next(problem), INVALID_ARGUMENT))

    require(code.equals(kind, BUFFER))
    buffer = code.load(code.load(arrays, VALUES), code.multiply(position, 8))
    require(code.equals(code.load_number(buffer, ELEMENT_TYPE), element_type))
    require(code.builder.not_(code.is_less(code.call(elements, buffer), least)))
    require(code.equals(code.builder.and_(code.load(buffer, DATA), odd_bits), 0))
    code.end(0)
    return code.function
