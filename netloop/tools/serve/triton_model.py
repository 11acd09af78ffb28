"""The model that Triton's python backend runs, for the folders that ``write_repository`` writes."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from netloop.api.engine import ICudaEngine, load
from netloop.process.idle_gpu import VISIBLE
from netloop.tools.serve.answer import Outputs
from netloop.tools.serve.hosting import service_of
from netloop.tools.serve.sequences import Sequences, Step
from netloop.tools.serve.server import Server
from netloop.tools.serve.triton import OPTIONS, PLAN
from netloop.values.types import UNKNOWN, Array, TensorType


class TritonModel:
    """The base class of ``TritonPythonModel`` in a ``model.py``, with the methods that the python backend calls.

    A request that fails has a response with the text of its error; the others of its call are answered.

    Attributes:
        utils: the module ``triton_python_backend_utils``, which only the python backend has.
    """

    utils: ClassVar[Any]

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the plan and compile its programs.

        An instance of KIND_GPU sees its own GPU only: JAX would take memory on all of them. Each instance is a process.

        Args:
            args: ``model_config``, the configuration as JSON, ``model_repository``, the folder of the model, and
                ``model_version``, the name of the folder of the version; ``model_instance_kind`` and
                ``model_instance_device_id``.

        Raises:
            FileFormatError: the plan is damaged, or of a newer version.
            NetworkError: the network does not fit the configuration.
            InputError: JAX has no such device.
            OSError: the plan cannot be read.
        """
        if args.get("model_instance_kind") == "GPU":
            os.environ[VISIBLE] = _device(args["model_instance_device_id"], os.environ.get(VISIBLE, ""))
        options = json.loads(json.loads(args["model_config"])["parameters"][OPTIONS]["string_value"])
        plan = Path(args["model_repository"]) / args["model_version"] / PLAN
        engine = load(plan, device=options.get("device"))
        self._model = _SequenceModel(engine, options) if options["states"] else _RowModel(engine, options)

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer requests: a response for each, with its outputs or its error."""
        result = self._model.answer([self._inputs(request) for request in requests], requests, self.utils)
        return [self._response(*entry) for entry in zip(requests, result, strict=True)]

    def finalize(self) -> None:
        """End the service."""
        self._model.service.close()

    def _inputs(self, request: Any) -> dict[str, Array]:
        tensors = {name: self.utils.get_input_tensor_by_name(request, name) for name in self._model.names}
        return {name: tensor.as_numpy() for name, tensor in tensors.items() if tensor is not None}

    def _response(self, request: Any, result: Outputs | Exception) -> Any:
        if isinstance(result, Exception):
            return self.utils.InferenceResponse(output_tensors=[], error=self.utils.TritonError(str(result)))
        wanted = set(request.requested_output_names())
        tensors = [self.utils.Tensor(name, array) for name, array in result.items() if name in wanted]
        return self.utils.InferenceResponse(output_tensors=tensors)


class _RowModel:
    """Requests of rows, or of whole tensors one at a time."""

    def __init__(self, engine: ICudaEngine, options: Mapping[str, Any]) -> None:
        # Triton's own queue is the bounded one
        service = service_of(engine, sizes=options["sizes"], shapes=options["shapes"], queue=MOST_REQUESTS)
        assert isinstance(service, Server)
        self.service = service
        self._types = service.input_types()
        self.names = [*self._types]

    def answer(self, inputs: list[dict[str, Array]], requests: list[Any], utils: Any) -> list[Outputs | Exception]:
        """The outputs, or the error, of each request."""
        result = self.service.call_all(
            {name: _without_axis(array, self._types[name].rank) for name, array in arrays.items()} for arrays in inputs
        )
        axes = 2 if self.service.sizes else 1
        return [of if isinstance(of, Exception) else _with_axes(of, axes) for of in result]


class _SequenceModel:
    """Requests that are steps of sequences."""

    def __init__(self, engine: ICudaEngine, options: Mapping[str, Any]) -> None:
        shapes = {name: tuple(option) for name, option in options["shapes"].items()}
        common = {"slots": options["slots"], "sizes": options["sizes"], "idle": options["idle"]}
        self.service = Sequences(engine, options["states"], shapes=shapes, queue=MOST_REQUESTS, **common)
        self.service.compile()
        self._types = self.service.input_types()
        self.names = [*self._types]
        self._rows = {tensor.name for tensor in engine.network.outputs if tensor.type.shape[:1] == (UNKNOWN,)}

    def answer(self, inputs: list[dict[str, Array]], requests: list[Any], utils: Any) -> list[Outputs | Exception]:
        """The outputs, or the error, of each request."""
        start, end = utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START, utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END
        steps = [
            Step(
                request.correlation_id(), self._step(arrays), bool(request.flags() & start), bool(request.flags() & end)
            )
            for request, arrays in zip(requests, inputs, strict=True)
        ]
        result = self.service.step_all(steps)
        return [outputs if isinstance(outputs, Exception) else self._with_rows(outputs) for outputs in result]

    def _step(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Arrays with the axis of rows of a network, where it has one, and without Triton's."""
        return {name: _reshaped(array, self._types[name]) for name, array in arrays.items()}

    def _with_rows(self, outputs: Outputs) -> Outputs:
        rows = {
            name: array if name in self._rows and array.shape[0] == 1 else array[None]
            for name, array in outputs.items()
        }
        return _with_axes(rows, 2)


MOST_REQUESTS = 1 << 20


def _device(number: str, visible: str) -> str:
    """The GPU of a number that Triton gives, which counts those that are visible to the server."""
    names = visible.split(",") if visible else []
    return names[int(number)].strip() if int(number) < len(names) else number


def _reshaped(array: Array, wanted: TensorType) -> Array:
    """An array in the shape of one step; one that does not fit as it is, so that its error names its own shape."""
    fits = array.shape[:1] == (1,) and array.size == np.prod(wanted.shape, dtype=np.int64)
    return array.reshape(wanted.shape) if fits else array


def _without_axis(array: Array, rank: int) -> Array:
    """An array of a rank that Triton gives one more axis of one element, because it has no numbers."""
    return array[..., 0] if array.ndim == rank + 1 and array.shape[-1] == 1 and rank < 2 else array


def _with_axes(outputs: Outputs, least: int) -> Outputs:
    """Outputs as Triton has them: a number is an array of one element."""
    return {name: array if array.ndim >= least else array[..., None] for name, array in outputs.items()}
