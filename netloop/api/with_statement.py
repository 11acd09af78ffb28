"""Support for ``with`` statements, in which scripts for TensorRT 10 use its objects."""

from typing import Self


class WithStatement:
    """An object that a ``with`` statement returns, and that needs no cleanup at the end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass
