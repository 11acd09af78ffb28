"""Networks as files for other runtimes, most of which need neither netloop nor Python."""

from netloop.formats.deploy import export

__all__ = ["export"]
