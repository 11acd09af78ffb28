"""The builder, from which networks come."""

from __future__ import annotations

from netloop.graph.layer import check_instance
from netloop.network import INetworkDefinition
from netloop.runtime.logger import ILogger


class Builder:
    """Makes networks.

    Attributes:
        logger: what its messages go to.
    """

    def __init__(self, logger: ILogger) -> None:
        self.logger: ILogger = check_instance("logger", logger, ILogger)

    def create_network(self, flags: int = 0) -> INetworkDefinition:
        """A network without layers. It is strongly typed, whatever the flags say."""
        return INetworkDefinition(self, flags)

    def __enter__(self) -> Builder:
        return self

    def __exit__(self, *exception: object) -> None:
        pass
