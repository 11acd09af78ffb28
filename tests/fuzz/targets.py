"""All targets, by their names."""

from tests.fuzz import calls, onnx_models, openvino_models, plans

TARGETS = {each.TARGET.name: each.TARGET for each in (plans, onnx_models, openvino_models, calls)}
