"""The runtime of MLServer, which ``model-settings.json`` names: ``netloop.serve.mlserver.NetloopRuntime``."""

from netloop.tools.serve.mlserver import NetloopRuntime as NetloopRuntime
