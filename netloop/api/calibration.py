"""Base classes of INT8 calibrators in scripts for TensorRT 10. netloop calibrates nothing and never calls them."""

from collections.abc import Sequence

from netloop.api.enums import CalibrationAlgoType


class IInt8Calibrator:
    """A source of batches for calibration; derive from one of the classes below and override the methods."""

    ALGORITHM = CalibrationAlgoType.ENTROPY_CALIBRATION_2

    def get_algorithm(self) -> CalibrationAlgoType:
        """The algorithm that would compute the ranges."""
        return self.ALGORITHM

    def get_batch_size(self) -> int:
        """The number of examples in a batch."""
        raise NotImplementedError(f"{type(self).__name__} overrides no get_batch_size()")

    def get_batch(self, names: Sequence[str]) -> Sequence[int] | None:
        """Return the addresses of the next batch, one for each name; None after the last batch."""
        raise NotImplementedError(f"{type(self).__name__} overrides no get_batch(names)")

    def read_calibration_cache(self) -> bytes | None:
        """Return the ranges of an earlier calibration; None if there are none."""

    def write_calibration_cache(self, cache: bytes) -> None:
        """Store ranges for a later calibration."""


class IInt8LegacyCalibrator(IInt8Calibrator):
    """A calibrator by percentiles."""

    ALGORITHM = CalibrationAlgoType.LEGACY_CALIBRATION


class IInt8EntropyCalibrator(IInt8Calibrator):
    """A calibrator by entropy."""

    ALGORITHM = CalibrationAlgoType.ENTROPY_CALIBRATION


class IInt8EntropyCalibrator2(IInt8Calibrator):
    """A calibrator by entropy, for whole tensors."""


class IInt8MinMaxCalibrator(IInt8Calibrator):
    """A calibrator by the smallest and the largest element."""

    ALGORITHM = CalibrationAlgoType.MINMAX_CALIBRATION
