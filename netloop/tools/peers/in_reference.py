"""The reference as a peer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from netloop.model.network import INetworkDefinition
from netloop.model.reference import evaluate
from netloop.tools.peers.base import Peer


class ReferencePeer(Peer):
    """The interpreter in numpy."""

    name = "reference"

    def _load(self, network: INetworkDefinition, file: Path) -> None:
        self._network = network

    def _run(self, inputs: Mapping[str, Any]) -> list[Any]:
        result = evaluate(self._network, inputs)
        return [result[name] for name in self._outputs]
