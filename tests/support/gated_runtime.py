"""A runtime of MLServer whose service waits for a file, so that a test decides how long a call takes."""

import time
from pathlib import Path

from netloop.tools.serve.mlserver import NetloopRuntime


class GatedRuntime(NetloopRuntime):
    """``parameters.extra`` has a folder as ``gate``: a call writes ``reached`` there, and waits for ``open``."""

    async def load(self) -> bool:
        gate = Path(self.settings.parameters.extra.pop("gate"))
        gate.mkdir(exist_ok=True)
        loaded = await super().load()
        run = self._service._run

        def waiting(batch):
            (gate / "reached").touch()
            while not (gate / "open").exists():
                time.sleep(0.01)
            return run(batch)

        self._service._run = waiting
        return loaded
