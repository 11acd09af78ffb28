"""Loggers, which receive the messages of builders, runtimes and engines."""

import sys
from functools import total_ordering

from netloop.model.graph.attributes import check_member
from netloop.values.checked_attributes import WithStatement
from netloop.values.enums import TensorRTEnum


class ILogger(WithStatement):
    """A receiver of messages; derive from it and override ``log``."""

    @total_ordering
    class Severity(TensorRTEnum):
        """The severity of a message; smaller is more severe."""

        INTERNAL_ERROR = 0
        ERROR = 1
        WARNING = 2
        INFO = 3
        VERBOSE = 4

        def __lt__(self, other: "ILogger.Severity") -> bool:
            return self.value < other.value

    INTERNAL_ERROR = Severity.INTERNAL_ERROR
    ERROR = Severity.ERROR
    WARNING = Severity.WARNING
    INFO = Severity.INFO
    VERBOSE = Severity.VERBOSE

    def log(self, severity: Severity, msg: str) -> None:
        """Receive a message."""
        raise NotImplementedError(f"{type(self).__name__} overrides no log(severity, msg)")


class Logger(ILogger):
    """A logger that prints to standard error.

    Attributes:
        min_severity: the lowest severity that is printed.
    """

    def __init__(self, min_severity: ILogger.Severity = ILogger.Severity.WARNING) -> None:
        self.min_severity: ILogger.Severity = check_member("min_severity", min_severity, ILogger.Severity)

    def log(self, severity: ILogger.Severity, msg: str) -> None:
        """Print a message if it is severe enough."""
        if severity <= self.min_severity:
            print(f"[netloop] [{severity.name}] {msg}", file=sys.stderr)
