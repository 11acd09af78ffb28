"""``polygraphy run model.onnx --onnxrt --netloop``: Polygraphy compares netloop with other runtimes.

Polygraphy finds ``export_argument_groups`` by the entry point ``polygraphy.run.plugins`` of netloop's package.

Source: examples/dev/02_extending_polygraphy_run of Polygraphy
"""

from typing import Any

from polygraphy.tools.args import OnnxLoadArgs
from polygraphy.tools.args.base import BaseRunnerArgs
from polygraphy.tools.script import make_invocable


class NetloopRunnerArgs(BaseRunnerArgs):
    """netloop Inference: running inference with netloop, on any device of JAX.

    Depends on:

        - OnnxLoadArgs
    """

    def get_name_opt_impl(self) -> tuple[str, str]:
        """The name of the runner, and the option that adds it."""
        return "netloop", "netloop"

    def add_to_script_impl(self, script: Any) -> None:
        """Add a runner for the model that Polygraphy loads."""
        groups: Any = self.arg_groups
        model = groups[OnnxLoadArgs].add_to_script(script)
        script.add_import(imports=["NetloopRunner"], frm="netloop.tools.compat.polygraphy_runner")
        script.add_runner(make_invocable("NetloopRunner", model))


def export_argument_groups() -> list[Any]:
    """The groups of options that netloop adds to ``polygraphy run``."""
    return [NetloopRunnerArgs()]
