"""What scripts for TensorRT 10 derive their calibrators from. None is asked for a batch: nothing is calibrated."""

from __future__ import annotations

from collections.abc import Sequence

from netloop.api.enums import CalibrationAlgoType


class IInt8Calibrator:
    """What gives batches to find ranges by; derive from one of the classes below and override the methods."""

    ALGORITHM = CalibrationAlgoType.ENTROPY_CALIBRATION_2

    def get_algorithm(self) -> CalibrationAlgoType:
        """How ranges would be found."""
        return self.ALGORITHM

    def get_batch_size(self) -> int:
        """The number of examples in a batch."""
        raise NotImplementedError(f"{type(self).__name__} overrides no get_batch_size()")

    def get_batch(self, names: Sequence[str]) -> Sequence[int] | None:
        """The addresses of a batch, one for each name; None after the last."""
        raise NotImplementedError(f"{type(self).__name__} overrides no get_batch(names)")

    def read_calibration_cache(self) -> bytes | None:
        """Ranges found before; None if there are none."""

    def write_calibration_cache(self, cache: bytes) -> None:
        """Keep ranges for later."""


class IInt8LegacyCalibrator(IInt8Calibrator):
    """A calibrator by percentiles."""

    ALGORITHM = CalibrationAlgoType.LEGACY_CALIBRATION


class IInt8EntropyCalibrator(IInt8Calibrator):
    """A calibrator by entropy."""

    ALGORITHM = CalibrationAlgoType.ENTROPY_CALIBRATION


class IInt8EntropyCalibrator2(IInt8Calibrator):
    """A calibrator by entropy, for whole tensors."""


class IInt8MinMaxCalibrator(IInt8Calibrator):
    """A calibrator by the least and the largest element."""

    ALGORITHM = CalibrationAlgoType.MINMAX_CALIBRATION
