"""Matrix multiply, einsum and determinant."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.model.graph import ITensor, NetworkBase, Operation, check_tensors, layer
from netloop.model.graph.padded_axes import Axes, Neutral, Neutrals
from netloop.values.diagnostics import require
from netloop.values.enums import LayerType, MatrixOperation
from netloop.values.types import HALVES, INTEGERS, OWN, UNKNOWN, Array, Shape, TensorType, broadcast, wide

PRECISION: jax.lax.Precision | None = None
"""The precision of float32 products; None is JAX's default, the fast precision of the device."""


def _require_numbers(operands: Sequence[TensorType]) -> None:
    for position, x in enumerate(operands):
        require(
            x.is_number,
            f"operand {position} is {x}, but must be numeric",
            fix="convert it with add_cast",
            why="products are summed, which text and bool have no sums for",
        )
    require(
        len({x.dtype for x in operands}) == 1,
        f"the operands are {' and '.join(map(str, operands))}, but must have the same element type",
        why="TensorRT's networks are strongly typed: nothing is converted silently",
        fix="convert one of them with add_cast",
    )


def multiplied_beyond(x: TensorType) -> str:
    """The portability finding for products: TensorRT multiplies only floating-point numbers."""
    return "" if x.is_float or x.dtype in OWN else f"multiplies {x.dtype}"


def reference_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which the reference sums products: integers in their own type, which wraps, others in float64."""
    return dtype if dtype in INTEGERS else np.dtype(np.float64)


def _accumulator(dtype: np.dtype[Any]) -> Any:
    """The type in which products are summed; None for ``dtype`` itself."""
    return np.float32 if dtype in HALVES else None


@layer(LayerType.MATRIX_MULTIPLY, "Matrix Multiply")
class IMatrixMultiplyLayer(Operation):
    """Multiply two matrices, a matrix and a vector, or batches of them.

    output[.., i, j] = sum over k of a[.., i, k] b[.., k, j]

    The last two axes of an operand are its matrix, transposed first for TRANSPOSE. For VECTOR it is only the last axis:
    a row vector as the first operand, a column vector as the second, and the output has no axis i, or j. Both operands
    have the same number of batch axes; those of length 1 are broadcast.

    Numbers of the same type; half types are summed in float32 and rounded once, integers wrap. TensorRT multiplies only
    floating-point numbers.

    Attributes:
        op0: the interpretation of the first operand.
        op1: the interpretation of the second operand.
    """

    HAS_PRODUCTS = True
    REQUIRED_INPUTS = 2

    op0: MatrixOperation
    op1: MatrixOperation

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        _require_numbers([a, b])
        _require_axes("first", a, self.op0)
        _require_axes("second", b, self.op1)
        batch_a, rows, inner_a = _split(a.shape, self.op0, 1)
        batch_b, columns, inner_b = _split(b.shape, self.op1, 0)
        require(
            inner_a == inner_b or UNKNOWN in (inner_a, inner_b),
            f"the rows of the first operand, {a} read as {self.op0.name}, have {inner_a} elements, "
            f"and the columns of the second, {b} read as {self.op1.name}, have {inner_b}",
            why="each row is multiplied by each column, element by element",
            fix=self._transposing(b, inner_a),
        )
        require(
            len(batch_a) == len(batch_b),
            f"the first operand has {len(batch_a)} axes before its {_kind(self.op0)}, "
            f"and the second {len(batch_b)} before its {_kind(self.op1)}",
            why="TensorRT broadcasts axes of length 1, but never adds an axis",
            fix="add the missing axes with add_unsqueeze, or add_shuffle and reshape_dims",
        )
        return a.with_shape(broadcast(batch_a, batch_b) + rows + columns)

    def _transposing(self, b: TensorType, inner: int) -> str:
        """The fix for a second operand that the other operation would make fit."""
        other = {MatrixOperation.NONE: MatrixOperation.TRANSPOSE, MatrixOperation.TRANSPOSE: MatrixOperation.NONE}
        turned = other.get(self.op1)
        if turned is None or _split(b.shape, turned, 0)[2] != inner:
            return ""
        return f"set op1 to MatrixOperation.{turned.name}"

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        # both are filled, as 0 times garbage may be NaN
        summed = [
            frozenset({type.rank - _own_axes(operation) + _summed_axis(operation, plain)}) & axes
            for type, operation, plain, axes in zip(types, (self.op0, self.op1), (1, 0), padded, strict=True)
        ]
        return {operand: Neutral(axes, 0) for operand, axes in enumerate(summed) if axes}

    def beyond_tensorrt(self, a: TensorType, b: TensorType) -> str:
        return multiplied_beyond(a)

    def evaluate(self, a: Array, b: Array) -> Array:
        batch_a, rows, inner = _split(a.shape, self.op0, 1)
        batch_b, columns, _ = _split(b.shape, self.op1, 0)
        batch = broadcast(batch_a, batch_b)
        left = a.swapaxes(-1, -2) if self.op0 is MatrixOperation.TRANSPOSE else a
        right = b.swapaxes(-1, -2) if self.op1 is MatrixOperation.TRANSPOSE else b
        array = np.zeros(batch + rows + columns, reference_type(a.dtype))
        for position in np.ndindex(batch):
            x, y = _member(left, position), _member(right, position)
            for k in range(inner):
                array[position] += np.multiply.outer(x[..., k], y[k])
        return array.astype(a.dtype)

    def lower(self, a: Any, b: Any) -> Any:
        a, b = jnp.asarray(a), jnp.asarray(b)
        accumulator = _accumulator(a.dtype)
        if a.ndim == _own_axes(self.op0) and b.ndim == _own_axes(self.op1):
            summed = ((_summed_axis(self.op0, 1),), (_summed_axis(self.op1, 0),)), ((), ())
            array = jax.lax.dot_general(a, b, summed, PRECISION, accumulator)
            return array.astype(a.dtype)
        left, right = _lower_operand(a, self.op0, -2), _lower_operand(b, self.op1, -1)
        array = jnp.matmul(left, right, precision=PRECISION, preferred_element_type=accumulator)
        vectors = [axis for axis, op in ((-2, self.op0), (-1, self.op1)) if op is MatrixOperation.VECTOR]
        return jnp.squeeze(array, vectors).astype(a.dtype)


def _own_axes(op: MatrixOperation) -> int:
    return 1 if op is MatrixOperation.VECTOR else 2


def _summed_axis(op: MatrixOperation, plain: int) -> int:
    """The contracted axis of an operand without a batch; ``plain`` is the axis of an untransposed matrix."""
    return 0 if op is MatrixOperation.VECTOR else plain if op is MatrixOperation.NONE else 1 - plain


def _kind(op: MatrixOperation) -> str:
    return "vector" if op is MatrixOperation.VECTOR else "matrix"


def _require_axes(which: str, x: TensorType, op: MatrixOperation) -> None:
    if op is MatrixOperation.VECTOR:
        require(
            x.rank >= 1,
            f"the {which} operand is a scalar, {x}, but must be a vector",
            fix="use add_elementwise PROD",
            why="MatrixOperation.VECTOR reads an axis of elements to multiply",
        )
        return
    require(
        x.rank >= 2,
        f"the {which} operand, {x}, is not a matrix",
        why=f"{op.name} needs two axes",
        fix=f"read it as MatrixOperation.VECTOR: op{0 if which == 'first' else 1}" if x.rank else "",
    )


def _split(shape: Shape, op: MatrixOperation, inner: int) -> tuple[Shape, Shape, int]:
    """The batch axes, the remaining axis of the matrix (none for a vector), and the length of the contracted axis.

    Args:
        shape: the shape of an operand.
        op: its interpretation.
        inner: the contracted axis of the matrix.
    """
    if op is MatrixOperation.VECTOR:
        return shape[:-1], (), shape[-1]
    matrix = shape[-2:] if op is MatrixOperation.NONE else (shape[-1], shape[-2])
    return shape[:-2], (matrix[1 - inner],), matrix[inner]


def _member(x: Array, position: Shape) -> Array:
    """The matrix or vector at a position of the broadcast batch."""
    own = tuple(i % length for i, length in zip(position, x.shape, strict=False))
    return x[own].astype(reference_type(x.dtype))


def _lower_operand(x: Any, op: MatrixOperation, vector_axis: int) -> Any:
    if op is MatrixOperation.VECTOR:
        return jnp.expand_dims(x, vector_axis)
    return jnp.swapaxes(x, -1, -2) if op is MatrixOperation.TRANSPOSE else jnp.asarray(x)


Labels = tuple[str, ...]


@dataclass(frozen=True)
class Subscripts:
    """A parsed einsum equation: a label for each axis of the operands and the result.

    Letters are the user's labels; the axes of "..." have numbers, "1" for the last.

    Attributes:
        operands: the labels of the axes of each operand.
        result: those of the result.
    """

    operands: tuple[Labels, ...]
    result: Labels

    @staticmethod
    def of(equation: str, ranks: Sequence[int]) -> "Subscripts":
        """Parse an equation for operands of the given ranks.

        Raises:
            LayerError: the equation is malformed, or does not fit the ranks.
        """
        left, arrow, right = equation.replace(" ", "").partition("->")
        terms = left.split(",")
        require(
            len(terms) == len(ranks),
            f"the equation {equation!r} has {len(terms)} operands, and the layer {len(ranks)} inputs",
            why="each operand has its labels, separated by commas",
        )
        operands = tuple(_labels(equation, term, rank) for term, rank in zip(terms, ranks, strict=True))
        counts = Counter(label for own in operands for label in own)
        dots = sorted((label for label in counts if label.isdigit()), key=int, reverse=True)
        if not arrow:
            return Subscripts(
                operands, (*dots, *sorted(name for name, n in counts.items() if n == 1 and name.isalpha()))
            )
        result = _result_labels(equation, right, len(dots))
        for label in result:
            require(
                label in counts,
                f"the result of {equation!r} has the label {label!r}, which no operand has",
                why="an axis of the result is an axis of an operand",
            )
        return Subscripts(operands, result)

    def lengths(self, shapes: Sequence[Shape]) -> dict[str, int]:
        """The dim of each label.

        Raises:
            LayerError: a label has two different dims.
        """
        numbers: dict[str, int] = {}
        for own, shape in zip(self.operands, shapes, strict=True):
            for label, length in zip(own, shape, strict=True):
                numbers[label] = _common_length(label, numbers.get(label, length), length)
        return numbers


def _labels(equation: str, term: str, rank: int) -> Labels:
    _require_term(equation, term)
    before, dots, after = term.partition("...")
    rest = rank - len(before) - len(after)
    require(
        rest == 0 or (rest > 0 and bool(dots)),
        f"{term!r} in {equation!r} labels {len(before) + len(after)} axes, and its operand has {rank}",
        why="each axis needs a label, or '...'",
    )
    return (*before, *map(str, range(rest, 0, -1)), *after)


def _result_labels(equation: str, term: str, num_dots: int) -> Labels:
    _require_term(equation, term)
    before, dots, after = term.partition("...")
    require(
        bool(dots) or num_dots == 0,
        f"the result of {equation!r} has no '...', and the operands have {num_dots} axes under '...'",
        why="axes under '...' are not summed over",
        fix=f"write '...{term}' as the result, or label these axes",
    )
    twice = [label for label, count in Counter(before + after).items() if count > 1]
    require(
        not twice,
        f"the result of {equation!r} has the label {twice and twice[0]!r} twice",
        why="an axis of the result has one label",
    )
    return (*before, *map(str, range(num_dots, 0, -1)), *after)


def _require_term(equation: str, term: str) -> None:
    require(
        re.fullmatch(r"[a-z]*(\.\.\.)?[a-z]*", term) is not None,
        f"{term!r} in the equation {equation!r} is not a list of labels",
        why="a label is a lower-case letter, and '...', at most once, stands for any number of axes",
    )


def _common_length(label: str, one: int, other: int) -> int:
    if label.isdigit():
        return broadcast((one,), (other,))[0]
    require(
        one == other or UNKNOWN in (one, other),
        f"the label {label!r} is used for axes of lengths {one} and {other}",
        why="all axes of a label have the same length; only axes under '...' are broadcast",
    )
    return other if one == UNKNOWN else one


@layer(LayerType.EINSUM, "Einsum")
class IEinsumLayer(Operation):
    """Einstein summation: sum products over the labels that are not in the result.

    "ij,jk->ik": output[i, k] = sum over j of a[i, j] b[j, k]

    Each axis of an operand has a lower-case letter. A letter that appears twice in an operand takes its diagonal. "..."
    stands for any number of axes, aligned at the last and broadcast. Without "->" the result has the axes of "...",
    then the letters that appear once, in alphabetical order.

    Numbers of the same type; half types are summed in float32 and rounded once, integers wrap. TensorRT multiplies only
    floating-point numbers.

    Attributes:
        equation: the labels; spaces are ignored.
    """

    HAS_PRODUCTS = True

    equation: str

    def infer(self, *operands: TensorType) -> TensorType:
        require(len(operands) > 0, "the layer has no operands", why="an equation multiplies one operand or more")
        _require_numbers(operands)
        subscripts = Subscripts.of(self.equation, [x.rank for x in operands])
        lengths = subscripts.lengths([x.shape for x in operands])
        return operands[0].with_shape(lengths[label] for label in subscripts.result)

    def beyond_tensorrt(self, *operands: TensorType) -> str:
        return multiplied_beyond(operands[0])

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        subscripts = Subscripts.of(self.equation, [type.rank for type in types])
        summed = [
            frozenset(axis for axis in axes if own[axis] not in subscripts.result)
            for own, axes in zip(subscripts.operands, padded, strict=True)
        ]
        return {operand: Neutral(axes, 0) for operand, axes in enumerate(summed) if axes}

    def evaluate(self, *operands: Array) -> Array:
        subscripts = Subscripts.of(self.equation, [x.ndim for x in operands])
        lengths = subscripts.lengths([x.shape for x in operands])
        labels = [*subscripts.result, *(label for label in lengths if label not in subscripts.result)]
        places = np.indices([lengths[label] for label in labels], sparse=True)
        place = dict(zip(labels, places, strict=True))
        wide = reference_type(operands[0].dtype)
        product = np.ones((), wide)
        for x, own in zip(operands, subscripts.operands, strict=True):
            at = tuple(place[label] % length for label, length in zip(own, x.shape, strict=True))
            product = product * x[at].astype(wide)
        summed = tuple(range(len(subscripts.result), len(labels)))
        return np.asarray(np.sum(product, summed, wide)).astype(operands[0].dtype)

    def lower(self, *operands: Any) -> Any:
        dtype = operands[0].dtype
        accumulator = _accumulator(dtype)
        result: Any = jnp.einsum(self.equation, *operands, precision=PRECISION, preferred_element_type=accumulator)
        return result.astype(dtype)


@layer(LayerType.DETERMINANT, "Determinant")
class IDeterminantLayer(Operation):
    """The determinant of a square matrix, or of each in a batch.

    Input [.., n, n], output [..], floating-point; half types in float32. The determinant of an empty matrix is 1.

    A netloop extension, with the meaning of ONNX's Det; TensorRT has no such layer.
    """

    def infer(self, x: TensorType) -> TensorType:
        require(x.is_float, f"the input is floating-point, not {x}", fix="convert it with add_cast")
        square = x.rank >= 2 and (x.shape[-1] == x.shape[-2] or UNKNOWN in x.shape[-2:])
        require(
            square,
            f"the input is {x}, and its last two axes must be equal",
            why="the last two axes are a square matrix",
        )
        return x.with_shape(x.shape[:-2])

    def beyond_tensorrt(self, x: TensorType) -> str:
        return "is a determinant, for which TensorRT has no layer"

    def evaluate(self, x: Array) -> Array:
        return np.asarray(np.linalg.det(x.astype(np.float64))).astype(x.dtype)

    def lower(self, x: Any) -> Any:
        return jnp.linalg.det(wide(jnp.asarray(x))).astype(x.dtype)


class ProductMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "products and transforms"

    def add_matrix_multiply(
        self, input0: ITensor, op0: MatrixOperation, input1: ITensor, op1: MatrixOperation
    ) -> IMatrixMultiplyLayer:
        """Add the product of two matrices, of batches of them, or of a matrix and a vector.

        output[.., i, j] = sum over k of a[.., i, k] b[.., k, j]

        The last two axes of an operand are its matrix, transposed first for TRANSPOSE. For VECTOR it is only the
        last axis: a row vector as the first operand, a column vector as the second, and the output has no axis i, or j.
        Both operands have the same number of batch axes; those of length 1 are broadcast.

        Numbers of the same type; half types are summed in float32 and rounded once, integers wrap. TensorRT
        multiplies only floating-point numbers.

        Args:
            input0: input 0.
            op0: the interpretation of the first operand.
            input1: input 1.
            op1: the interpretation of the second operand.
        """
        return self.add(IMatrixMultiplyLayer(op0=op0, op1=op1), input0=input0, input1=input1)

    def add_einsum(self, inputs: Sequence[ITensor], equation: str) -> IEinsumLayer:
        """Add an Einstein summation.

        "ij,jk->ik": output[i, k] = sum over j of a[i, j] b[j, k]

        Each axis of an operand has a lower-case letter. A letter that appears twice in an operand takes its
        diagonal. "..." stands for any number of axes, aligned at the last and broadcast. Without "->" the result has
        the axes of "...", then the letters that appear once, in alphabetical order.

        Numbers of the same type; half types are summed in float32 and rounded once, integers wrap. TensorRT
        multiplies only floating-point numbers.

        Args:
            inputs: the inputs, in order.
            equation: the labels; spaces are ignored.
        """
        return self.add(IEinsumLayer(equation=equation), check_tensors(inputs))

    def add_determinant(self, input: ITensor) -> IDeterminantLayer:
        """Add the determinant of each square matrix; a netloop extension.

        Input [.., n, n], output [..], floating-point; half types in float32. The determinant of an empty matrix is
        1.

        A netloop extension, with the meaning of ONNX's Det; TensorRT has no such layer.

        Args:
            input: the input.
        """
        return self.add(IDeterminantLayer(), input=input)
