"""Products of matrices and tensors: matrix multiply, einsum."""

from netloop.enums import LayerType, MatrixOperation
from netloop.graph.layer import Operation, layer


@layer(LayerType.MATRIX_MULTIPLY, "Matrix Multiply")
class IMatrixMultiplyLayer(Operation):
    """."""

    REQUIRED_INPUTS = 2

    op0: MatrixOperation
    op1: MatrixOperation


@layer(LayerType.EINSUM, "Einsum")
class IEinsumLayer(Operation):
    """."""

    equation: str
