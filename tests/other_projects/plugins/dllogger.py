"""NVIDIA's package of logs, by whose names a demo can be imported; it writes none."""

StdOutBackend = JSONStreamBackend = Verbosity = None
