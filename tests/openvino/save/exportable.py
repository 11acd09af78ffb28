"""Random networks of what both OpenVINO and its CPU plugin have."""

import netloop as trt
from tests.onnx.save.exportable import Exportable

NOT_IN_OPENVINO = {trt.e4m3fnuz, trt.e5m2fnuz}


class Expressible(Exportable):
    """Grows networks that are saved as OpenVINO models."""

    dtypes = [each for each in Exportable.dtypes if each not in NOT_IN_OPENVINO]
