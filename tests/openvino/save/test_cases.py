"""Every kind of layer in OpenVINO gives what the reference gives, on the cases of the tests of the layers."""

from itertools import groupby

import numpy as np

import netloop as trt
from tests.laws import Case, assert_close
from tests.onnx.save.cases import add_case, all_cases
from tests.openvino.save.runtime import export, run

# fmt: off
NOT_IN_OPENVINO = {
}
NOT_IN_PLUGIN = {
}
# fmt: on
CASES = [each for each in all_cases() if str(each) not in NOT_IN_OPENVINO]
RUN = [each for each in CASES if str(each) not in NOT_IN_PLUGIN and not each.layer.draws]
BY_KIND = {kind: list(cases) for kind, cases in groupby(RUN, lambda each: type(each.layer).__name__)}


def outputs(case: Case) -> tuple[np.ndarray, ...]:
    results = case.layer.evaluate(*case.inputs, **case.named)
    return results if isinstance(results, tuple) else (results,)


def assert_same(got: np.ndarray, wanted: np.ndarray, rtol: float) -> None:
    assert got.dtype == wanted.dtype
    if wanted.dtype.name.startswith(("float8", "int4", "uint4")):
        got, wanted = got.astype(np.float32), wanted.astype(np.float32)
    assert_close(got, wanted, max(rtol, 1e-4))


def agree(cases: list[Case]) -> None:
    """All cases as one network."""
    network, arrays = trt.INetworkDefinition(), {}
    for number, case in enumerate(cases):
        arrays |= add_case(network, case, before=f"{number}.")
    got = run(export(network), arrays)
    for number, case in enumerate(cases):
        for position, wanted in enumerate(outputs(case)):
            assert_same(got[f"{number}.y{position}"], wanted, case.rtol)
