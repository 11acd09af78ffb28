"""All targets, by their names."""

from tests.fuzz import calls, onnx_models, openvino_models, plans

TARGETS = {type_.TARGET.name: type_.TARGET for type_ in (plans, onnx_models, openvino_models, calls)}
