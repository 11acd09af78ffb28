"""Layers without tensor data as input: constant, fill, shape."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.random import threefry_prng_impl

from netloop.model.graph.attributes import check_member
from netloop.model.graph.layer import Operation, layer
from netloop.model.graph.network_base import NetworkBase
from netloop.model.graph.padded_axes import NO_NEUTRALS, Axes, Lengths, Neutrals, length_along
from netloop.model.graph.tensor import ITensor
from netloop.model.weights import WeightsLike, weights_array
from netloop.process.forked import require_jax
from netloop.values.diagnostics import require
from netloop.values.dims import DimsLike
from netloop.values.enums import DataType, FillOperation, LayerType
from netloop.values.string_arrays import type_name
from netloop.values.types import (
    FLOATS,
    HALVES,
    INDICES,
    INTEGERS,
    OWN,
    UNKNOWN,
    Array,
    FlatArray,
    Shape,
    TensorType,
    agree,
    numpy_type,
)


@layer(LayerType.CONSTANT, "Constant")
class IConstantLayer(Operation):
    """A constant tensor.

    Any element type, strings too. The volume of the shape is the number of elements; a scalar has the shape ``()``.

    Attributes:
        shape: the dims; one may be -1, and is inferred from the others.
        weights: the numbers or strings, in row-major order; 1-D, whatever the shape of the array that was given.
        input_shape: the shape of the arrays that a call may pass instead, as an input of the name of the layer, with -1
            for any length; None if the numbers are the same in all calls. A netloop extension, for the defaults of
            inputs in ONNX.
    """

    REQUIRED_INPUTS = 0
    NUMPY_IS_FAST = True

    shape: DimsLike
    weights: FlatArray
    input_shape: DimsLike | None = None

    def infer(self) -> TensorType:
        return TensorType.of(self.evaluate())

    def evaluate(self) -> Array:
        shape, size = self.shape, self.weights.size
        require(
            min(shape, default=0) >= UNKNOWN,
            f"shape {shape} has a dim below -1",
            why="-1 stands for the length that remains, and no other negative number has a meaning",
        )
        require(shape.count(UNKNOWN) <= 1, f"shape {shape} has -1 more than once", why="only one dim can be inferred")
        number = math.prod(length for length in shape if length != UNKNOWN)
        fits = number > 0 and size % number == 0 if UNKNOWN in shape else size == number
        require(
            fits,
            f"weights have {size} elements, which shape {shape} cannot hold",
            fix="give the shape of the array, weights.shape",
            why="each element of the constant is a number of the array",
        )
        return self.weights.reshape(shape)

    def lower(self) -> Any:
        return jnp.asarray(self.evaluate())

    def unshared_arrays(self) -> dict[str, Any]:
        if self.weights.size > 1 and not any(
            self.weights.strides
        ):  # a view of one number: a script may still change it
            one = self.weights[(0, ...)].copy()
            return {"weights": np.broadcast_to(one, self.weights.shape)}
        return {"weights": self.weights.copy()}


@layer(LayerType.FILL, "Fill")
class IFillLayer(Operation):
    """Fill a tensor with evenly spaced or random numbers.

    ==============  ============================================================================================
    LINSPACE        alpha + the sum over the axes d of beta[d] i[d], at the index i; integers, floating-point
    RANDOM_UNIFORM  uniform random numbers in [alpha, beta); floating-point
    RANDOM_NORMAL   normal random numbers with mean alpha and standard deviation beta; floating-point
    ==============  ============================================================================================

    Inputs, all optional: 0 the shape, 1-D, int32 or int64; 1 alpha, 0-D; 2 beta, 0-D, for LINSPACE 1-D with a number
    for each axis. Alpha and beta are both inputs or both attributes, of the element type of the output. As an
    attribute beta is one number, so LINSPACE then has at most one axis.

    Random numbers are seeded by the layer's index in the network and the iteration numbers of the loops around it, so
    that an engine and the reference draw the same ones, and every run does.

    Attributes:
        shape: the shape of the output.
        operation: the fill operation.
        to_type: the element type.
        alpha, beta: the two parameters; what is not a number is ignored, with a line in the log, as by TensorRT.
    """

    NUMPY_IS_FAST = True
    REQUIRED_INPUTS = 0
    MAX_INPUTS = 3
    SHAPE_INPUTS = PADDED_SIZES = frozenset({0})
    OUTPUT_TYPES = frozenset({DataType.FLOAT, DataType.HALF, DataType.INT32, DataType.INT64})
    INPUT_OF = {"shape": 0, "alpha": 1, "beta": 2}

    shape: DimsLike
    operation: FillOperation
    to_type: DataType = DataType.FLOAT
    alpha: float = 0.0
    beta: float = 1.0

    def _set(self, name: str, value: Any) -> None:
        try:
            super()._set(name, value)
        except TypeError:
            if name not in ("alpha", "beta") or self.index < 0:
                raise
            # TensorRT's bindings take any object for these two, and pass on only numbers
            what = f"{name} of a fill stays {getattr(self, name)}, because {value!r} is not a number"
            self.types.owner.warn_once(f"{name} of {self.name}", what)

    if not TYPE_CHECKING:
        __setattr__ = _set

    @property
    def draws(self) -> bool:
        return self.operation is not FillOperation.LINSPACE

    def is_alpha_beta_int64(self) -> bool:
        """Whether alpha and beta are int64: they have the type of the elements."""
        return self.to_type is DataType.INT64

    def infer(
        self, shape: TensorType | None = None, alpha: TensorType | None = None, beta: TensorType | None = None
    ) -> TensorType:
        dtype = numpy_type(self.to_type)
        takes = FLOATS if self.draws else FLOATS | INTEGERS
        integers = "" if self.draws else "integers or "
        require(
            dtype in takes,
            f"{self.operation.name} makes {integers}floating-point numbers, not {type_name(dtype)}",
            why="the operation makes these types only",
        )
        tensor_type = TensorType(dtype, self._shape_of(shape))
        require(
            (alpha is None) == (beta is None),
            f"{'alpha' if beta is None else 'beta'} is an input, and {'beta' if beta is None else 'alpha'} is not",
            why="both are attributes, or both are inputs",
            fix=f"call set_input({2 if beta is None else 1}, tensor) too",
        )
        if alpha is not None and beta is not None:
            self._check_inputs(tensor_type, alpha, beta)
        else:
            self._check_attributes(tensor_type)
        return tensor_type

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        return None if any(padded) else NO_NEUTRALS

    def beyond_tensorrt(self, *inputs: TensorType | None) -> str:
        dtype = numpy_type(self.to_type)
        narrow = dtype in INTEGERS - INDICES - OWN
        return f"makes {dtype}" if narrow else ""

    def _shape_of(self, shape: TensorType | None) -> Shape:
        lengths = list(self.shape)
        if shape is not None:
            require(
                shape.rank == 1 and shape.is_index,
                f"the shape is 1-D, int32 or int64, not {shape}",
                why="it has one number for each axis",
            )
            require(shape.is_fixed, f"the shape {shape} has an unknown number of dims", why="the rank is fixed")
            dims = shape.ints()
            if dims is None:
                return shape.lengths()
            lengths = dims
        require(
            min(lengths, default=0) >= 0, f"the shape {tuple(lengths)} has a negative dim", why="a length is 0 or more"
        )
        return tuple(lengths)

    def _check_inputs(self, output: TensorType, alpha: TensorType, beta: TensorType) -> None:
        wanted = TensorType(output.dtype, () if self.draws else (output.rank,))
        require(
            alpha.dtype == output.dtype and alpha.rank == 0,
            f"alpha is {alpha}, but must be {TensorType(output.dtype)}",
            why="the elements are computed from it",
        )
        require(
            beta.dtype == output.dtype and agree(beta.shape, wanted.shape),
            f"beta is {beta}, but must be {wanted}",
            why="" if self.draws else "LINSPACE has one step for each axis",
        )
        if alpha.value is not None and beta.value is not None and self.draws:
            self._check_range(float(alpha.value), float(beta.value))

    def _check_attributes(self, output: TensorType) -> None:
        if self.draws:
            return self._check_range(self.alpha, self.beta)
        require(
            output.rank <= 1,
            f"the shape has {output.rank} axes, and beta is one number",
            why="LINSPACE has one step for each axis",
            fix="give alpha and beta as inputs 1 and 2",
        )
        for name in ("alpha", "beta"):
            value = getattr(self, name)
            require(
                output.is_float or value.is_integer(),
                f"{name} is {value}, and {output.dtype} has only whole numbers",
                why="the elements would have to be rounded",
            )
        return None

    def _check_range(self, alpha: float, beta: float) -> None:
        if self.operation is FillOperation.RANDOM_UNIFORM:
            require(alpha <= beta, f"alpha is {alpha} and beta {beta}", why="the interval from alpha to beta is empty")

    def evaluate(
        self,
        shape: Array | None = None,
        alpha: Array | None = None,
        beta: Array | None = None,
        trips: tuple[int, ...] = (),
    ) -> Array:
        lengths = self._shape_of(None if shape is None else TensorType(shape.dtype, shape.shape, shape))
        dtype = numpy_type(self.to_type)
        if self.draws:
            require_jax()
            with jax.enable_x64(True):
                return np.asarray(jax.block_until_ready(self._draw(lengths, alpha, beta, trips)))
        wide = dtype if dtype in INTEGERS else np.dtype(np.float64)
        return self._linspace(np, wide, lengths, alpha, beta).astype(dtype)

    def lower(
        self, shape: Array | None = None, alpha: Any = None, beta: Any = None, trips: tuple[Any, ...] = ()
    ) -> Any:
        lengths = tuple(self.shape if shape is None else shape.tolist())
        if self.draws:
            return self._draw(lengths, alpha, beta, trips)
        dtype = numpy_type(self.to_type)
        wide = np.dtype(np.float32) if dtype in HALVES else dtype
        return self._linspace(jnp, wide, lengths, alpha, beta).astype(dtype)

    def _linspace(self, xp: Any, dtype: np.dtype[Any], shape: Sequence[int], alpha: Any, beta: Any) -> Any:
        result = xp.full(shape, self.alpha if alpha is None else alpha, dtype)
        steps = xp.asarray([self.beta] if beta is None else beta).astype(dtype)
        for axis, length in enumerate(shape):
            index = xp.arange(length, dtype=dtype).reshape((length,) + (1,) * (len(shape) - axis - 1))
            result = result + steps[axis] * index
        return result

    def _draw(self, shape: Sequence[int], alpha: Any, beta: Any, trips: tuple[Any, ...]) -> Any:
        key = jax.random.key(np.uint32(0), impl="threefry2x32")
        for number in (self.index, *trips):
            key = jax.random.fold_in(key, number)
        dtype = numpy_type(self.to_type)
        low = jnp.asarray(self.alpha if alpha is None else alpha, dtype)
        high = jnp.asarray(self.beta if beta is None else beta, dtype)
        if self.operation is FillOperation.RANDOM_NORMAL:
            return low + high * _normal(key, shape, dtype)
        numbers = _uniform(key, shape, dtype, low, high)
        return jnp.where(numbers < high, numbers, low)  # rounding can raise a number to beta


def _uniform(key: Any, shape: Sequence[int], dtype: np.dtype[Any], low: Any, high: Any) -> Any:
    """``jax.random.uniform``, also where a function that JAX compiles without its x64 setting draws float64.

    JAX draws the bits when it lowers a function, with the setting of that time, and would draw 32 instead of 64.
    """
    if dtype != np.float64:
        return jax.random.uniform(key, shape, dtype, low, high)
    bits = threefry_prng_impl.random_bits(jax.random.key_data(key), 64, tuple(shape))
    from_one_to_two = lax.bitcast_convert_type(bits >> np.uint64(12) | np.float64(1).view(np.uint64), dtype)
    return jnp.maximum(low, (from_one_to_two - 1) * (high - low) + low)


def _normal(key: Any, shape: Sequence[int], dtype: np.dtype[Any]) -> Any:
    """``jax.random.normal``, with the same exception."""
    if dtype != np.float64:
        return jax.random.normal(key, shape, dtype)
    return np.sqrt(2) * lax.erf_inv(_uniform(key, shape, dtype, np.nextafter(-1.0, 0.0), 1.0))


@layer(LayerType.SHAPE, "Shape")
class IShapeLayer(Operation):
    """The shape of the input.

    Any element type as input; output int64, 1-D, one number for each axis, and none for a 0-D input.
    """

    NUMPY_IS_FAST = True
    TAKES_STRINGS = True
    TAKES_LENGTHS = True

    def infer(self, x: TensorType) -> TensorType:
        lengths = np.array(x.shape, np.int64)
        if x.is_fixed:
            return TensorType.of(lengths)
        return TensorType(lengths.dtype, lengths.shape, partial=np.ma.masked_equal(lengths, UNKNOWN))

    def evaluate(self, x: Array) -> Array:
        return np.array(x.shape, np.int64)

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        return NO_NEUTRALS

    def lower(self, x: Any, lengths: Lengths = ()) -> Any:
        if not lengths:
            return np.array(x.shape, np.int64)
        return jnp.array([length_along(x, axis, lengths[0]) for axis in range(x.ndim)], np.int64)


class SourceMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "sources"

    def add_constant(self, shape: Sequence[int], weights: WeightsLike) -> IConstantLayer:
        """Add a constant of the given shape and numbers.

        Any element type, strings too. The volume of the shape is the number of elements; a scalar has the shape
        ``()``.

        Args:
            shape: the dims; one may be -1, and is inferred from the others.
            weights: the numbers or strings, in row-major order; 1-D, whatever the shape of the array that was given.

        Further attributes of the layer, which have defaults: ``input_shape``.
        """
        return self.add(IConstantLayer(shape=shape, weights=weights_array(weights, "weights")), [])

    def add_fill(self, shape: Sequence[int], op: FillOperation, output_type: DataType = DataType.FLOAT) -> IFillLayer:
        """Fill a tensor with evenly spaced or random numbers.

        ==============  ============================================================================================
        LINSPACE        alpha + the sum over the axes d of beta[d] i[d], at the index i; integers, floating-point
        RANDOM_UNIFORM  uniform random numbers in [alpha, beta); floating-point
        RANDOM_NORMAL   normal random numbers with mean alpha and standard deviation beta; floating-point
        ==============  ============================================================================================

        Inputs, all optional: 0 the shape, 1-D, int32 or int64; 1 alpha, 0-D; 2 beta, 0-D, for LINSPACE 1-D with a
        number for each axis. Alpha and beta are both inputs or both attributes, of the element type of the output. As
        an attribute beta is one number, so LINSPACE then has at most one axis.

        Random numbers are seeded by the layer's index in the network and the iteration numbers of the loops around
        it, so that an engine and the reference draw the same ones, and every run does.

        Args:
            shape: the shape of the output.
            op: the fill operation.
            output_type: the element type.

        Further attributes of the layer, which have defaults: ``alpha``, ``beta``.
        """
        return self.add(
            IFillLayer(
                shape=shape,
                operation=check_member("op", op, FillOperation),
                to_type=check_member("output_type", output_type, DataType),
            ),
            [],
        )

    def add_shape(self, input: ITensor) -> IShapeLayer:
        """Add the shape of a tensor, as int64.

        Any element type as input; output int64, 1-D, one number for each axis, and none for a 0-D input.

        Args:
            input: the input.
        """
        return self.add(IShapeLayer(), input=input)
