"""The installed packages that scripts ask ``importlib.metadata`` for, as netloop stands in for them."""

from collections.abc import Iterator
from email.message import Message
from importlib.metadata import Distribution, DistributionFinder
from typing import Any

CUDA = {"cuda-python": "13.0.0", "cuda-bindings": "13.0.0", "pycuda": "2025.1"}
"""The versions of CUDA's packages for Python."""


class StandInDistribution(Distribution):
    """A package with a name and a version, and no files."""

    def __init__(self, name: str, version: str) -> None:
        self._metadata = Message()
        self._metadata["Name"], self._metadata["Version"] = name, version

    @property
    def metadata(self) -> Any:
        """Name and version."""
        return self._metadata

    def read_text(self, filename: str) -> str | None:
        """None: there are no files."""
        return self._metadata.as_string() if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        """The path itself."""
        return path


class StandInDistributions(DistributionFinder):
    """A finder of the packages, to which ``importlib.metadata`` comes by ``sys.meta_path``."""

    def __init__(self, tensorrt: str, has_gpu: bool) -> None:
        names = ("tensorrt", "tensorrt-bindings", "tensorrt-libs")
        self._versions = dict.fromkeys(names, tensorrt) | ({} if has_gpu else CUDA)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        """None: modules are in ``sys.modules``."""

    def find_distributions(self, context: Any = None) -> Iterator[Distribution]:
        """The package of the name in the context; all packages if it has none."""
        asked = getattr(context, "name", None)
        wanted = None if asked is None else str(asked).lower().replace("_", "-")
        for name, version in self._versions.items():
            if wanted in (None, name):
                yield StandInDistribution(name, version)
