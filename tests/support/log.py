"""A logger for tests."""

import netloop as trt


class Log(trt.ILogger):
    """A logger that records all messages."""

    def __init__(self):
        super().__init__()
        self.lines: list[tuple[trt.ILogger.Severity, str]] = []

    def log(self, severity, msg):
        self.lines.append((severity, msg))

    def errors(self):
        return [msg for severity, msg in self.lines if severity <= trt.Logger.ERROR]

    def infos(self):
        return [msg for severity, msg in self.lines if severity is trt.Logger.INFO]
