"""Functions of LLVM while they are written. Addresses and sizes are 64-bit integers, and so is every argument."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

ir: Any = import_module("llvmlite.ir")

INT, INT32, FLOAT = ir.IntType(64), ir.IntType(32), ir.FloatType()
FLOAT_BYTES = 4


class CodeLoop:
    """A loop whose variables stay in registers.

    Attributes:
        count: the number of the repetition.
    """

    count: Any

    def __init__(self, builder: Any, before: Any) -> None:
        self._builder, self._before = builder, before
        self._next: list[tuple[Any, Any]] = []

    def variable(self, first: Any) -> Any:
        """A variable with its value in the first repetition; all are made before anything else."""
        phi = self._builder.phi(first.type)
        phi.add_incoming(first, self._before)
        return phi

    def set_next(self, variable: Any, value: Any) -> None:
        """Set the value of a variable in the next repetition."""
        self._next.append((variable, value))

    def close(self, block: Any) -> None:
        """Connect the variables to their values at the end of a repetition, which a block ends."""
        for variable, value in self._next:
            variable.add_incoming(value, block)


class FunctionCode:
    """The code of one function.

    Attributes:
        builder: LLVM's builder, at the end of what is written.
        arguments: the arguments of the function.
        function: the function, which other code calls.
    """

    def __init__(self, module: Any, name: str, count: int, *, returns: bool = False, is_public: bool = False) -> None:
        kind = ir.FunctionType(INT if returns else ir.VoidType(), [INT] * count)
        self.module = module
        self.function = ir.Function(module, kind, name)
        self.function.linkage = "external" if is_public else "internal"
        self.arguments: Sequence[Any] = self.function.args
        self.builder = ir.IRBuilder(self.function.append_basic_block())

    def number(self, value: Any) -> Any:
        """A Python integer as a value; other values as they are."""
        return ir.Constant(INT, value) if isinstance(value, int) else value

    def add(self, a: Any, b: Any) -> Any:
        """The sum of two integers."""
        return self.builder.add(self.number(a), self.number(b))

    def subtract(self, a: Any, b: Any) -> Any:
        """The difference of two integers."""
        return self.builder.sub(self.number(a), self.number(b))

    def multiply(self, a: Any, b: Any) -> Any:
        """The product of two integers."""
        return self.builder.mul(self.number(a), self.number(b))

    def divide(self, a: Any, b: Any) -> Any:
        """The quotient of two integers that are not negative, rounded down."""
        return self.builder.udiv(self.number(a), self.number(b))

    def remainder(self, a: Any, b: Any) -> Any:
        """The remainder of two integers that are not negative."""
        return self.builder.urem(self.number(a), self.number(b))

    def is_less(self, a: Any, b: Any) -> Any:
        """Whether one integer is less than another."""
        return self.builder.icmp_signed("<", self.number(a), self.number(b))

    def equals(self, a: Any, b: Any) -> Any:
        """Whether two integers are equal."""
        return self.builder.icmp_signed("==", self.number(a), self.number(b))

    def least(self, a: Any, b: Any) -> Any:
        """The lesser of two integers."""
        return self.builder.select(self.is_less(a, b), self.number(a), self.number(b))

    def pointer(self, address: Any, offset: Any, kind: Any) -> Any:
        """A pointer to a value of a type, ``offset`` bytes after an address."""
        return self.builder.inttoptr(self.add(address, offset), kind.as_pointer())

    def load(self, address: Any, offset: Any = 0, kind: Any = INT, align: int | None = None) -> Any:
        """The value of a type in memory."""
        return self.builder.load(self.pointer(address, offset, kind), align=align)

    def store(self, value: Any, address: Any, offset: Any = 0, align: int | None = None) -> None:
        """Write a value to memory."""
        value = self.number(value)
        self.builder.store(value, self.pointer(address, offset, value.type), align=align)

    def load_number(self, address: Any, offset: Any = 0) -> Any:
        """A number of 32 bits in memory."""
        return self.builder.sext(self.load(address, offset, INT32), INT)

    def store_number(self, value: int, address: Any, offset: Any = 0) -> None:
        """Write a number of 32 bits to memory."""
        self.store(ir.Constant(INT32, value), address, offset)

    def fetch_and_add(self, address: Any, amount: Any, offset: Any = 0) -> Any:
        """Add to a number that threads share, and return what it was."""
        return self.builder.atomic_rmw("add", self.pointer(address, offset, INT), self.number(amount), "seq_cst")

    def exchanged(self, address: Any, old: Any, new: Any) -> Any:
        """Write a number that threads share if it is ``old``, and return whether it was."""
        pair = self.builder.cmpxchg(self.pointer(address, 0, INT), old, new, "seq_cst", "seq_cst")
        return self.builder.extract_value(pair, 1)

    def load_shared(self, address: Any, offset: Any = 0) -> Any:
        """A number that threads share."""
        return self.builder.load_atomic(self.pointer(address, offset, INT), "acquire", 8)

    def memory(self, size: int) -> Any:
        """The address of memory of the function, aligned for vectors."""
        with self.builder.goto_entry_block():
            memory = self.builder.alloca(ir.ArrayType(ir.IntType(8), size))
            memory.align = 64
            return self.builder.ptrtoint(memory, INT)

    def call(self, function: Any, *values: Any) -> Any:
        """Call a function of this module."""
        return self.builder.call(function, [self.number(value) for value in values])

    def call_address(self, address: Any, value: Any) -> Any:
        """Call the function at an address, of one argument."""
        kind = ir.FunctionType(INT, [INT]).as_pointer()
        return self.builder.call(self.builder.inttoptr(address, kind), [self.number(value)])

    def call_library(self, name: str, *values: Any) -> Any:
        """Call a function of the C library."""
        function = self.module.globals.get(name)
        if function is None:
            function = ir.Function(self.module, ir.FunctionType(INT, [INT] * len(values)), name)
        return self.call(function, *values)

    def call_intrinsic(self, name: str, kind: Any, *values: Any) -> Any:
        """Call a function of LLVM."""
        function = self.module.globals.get(name)
        if function is None:
            function = ir.Function(self.module, ir.FunctionType(kind, [value.type for value in values]), name)
        return self.builder.call(function, values)

    def jump_back(self, condition: Any, start: Any) -> Any:
        """Go back to the block ``start`` if a condition holds, and continue after it; return the block that ended."""
        ended, after = self.builder.block, self.function.append_basic_block()
        self.builder.cbranch(condition, start, after)
        self.builder.position_at_end(after)
        return ended

    def new_block(self) -> Any:
        """A block that begins here."""
        block = self.function.append_basic_block()
        self.builder.branch(block)
        self.builder.position_at_end(block)
        return block

    @contextmanager
    def counting(self, begin: Any, end: Any, step: Any = 1) -> Generator[Any]:
        """A loop over the numbers from ``begin`` up to but without ``end``."""
        begin = self.number(begin)
        with self.builder.if_then(self.is_less(begin, end)):
            before, start = self.builder.block, self.new_block()
            count = self.builder.phi(INT)
            count.add_incoming(begin, before)
            yield count
            following = self.add(count, step)
            count.add_incoming(following, self.jump_back(self.is_less(following, end), start))

    @contextmanager
    def repeating(self, end: Any, step: int) -> Generator[CodeLoop]:
        """A loop over the numbers from 0 up to but without ``end``, which is not 0, with variables in registers."""
        before, start = self.builder.block, self.new_block()
        loop = CodeLoop(self.builder, before)
        loop.count = loop.variable(self.number(0))
        yield loop
        following = self.add(loop.count, step)
        loop.set_next(loop.count, following)
        loop.close(self.jump_back(self.is_less(following, end), start))

    def end(self, result: Any = None) -> None:
        """Return from the function."""
        if result is None:
            self.builder.ret_void()
        else:
            self.builder.ret(self.number(result))
