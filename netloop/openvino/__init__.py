"""OpenVINO models: ``netloop.openvino.load("model.xml")`` gives a network."""

from netloop.openvino.load import load as load
from netloop.openvino.operators import supports as supports
