"""Host memory: the bytes of a plan."""

from netloop.values.checked_attributes import WithStatement
from netloop.values.enums import DataType


class IHostMemory(WithStatement, bytes):
    """The bytes of a plan or timing cache, ready to be written to a file."""

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return len(self)

    @property
    def dtype(self) -> DataType:
        """The type of the elements: INT8, as in TensorRT."""
        return DataType.INT8

    def __repr__(self) -> str:
        return f"<IHostMemory of {len(self)} bytes>"
