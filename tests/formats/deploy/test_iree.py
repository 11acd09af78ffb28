"""Networks as modules of IREE."""

import numpy as np
import pytest

import netloop as trt
from tests.formats.deploy.examples import EXAMPLES, same

pytest.importorskip("iree.compiler")
runtime = pytest.importorskip("iree.runtime")


@pytest.mark.parametrize("example", EXAMPLES)
def test_iree_gives_the_outputs_of_the_engine(example, tmp_path):
    network, inputs, outputs = example()
    trt.export(network, tmp_path / "a.vmfb")
    module = runtime.load_vm_flatbuffer((tmp_path / "a.vmfb").read_bytes(), driver="local-task")
    found = module.main(*(inputs[name] for name in sorted(inputs)))
    values = found if isinstance(found, tuple | list) else [found]

    same({name: np.asarray(value) for name, value in zip(sorted(outputs), values, strict=True)}, outputs)


def test_backend_that_it_lacks_is_refused(tmp_path):
    network, *_ = EXAMPLES[1]()

    with pytest.raises(trt.NetworkError, match="NL733: IREE's compiler refuses it"):
        trt.export(network, tmp_path / "a.vmfb", backends=["none"])
    assert not [*tmp_path.iterdir()]


def test_batch_is_refused(network, tmp_path):
    with pytest.raises(ValueError, match="has fixed shapes: leave out batch, and give shapes"):
        trt.export(network, tmp_path / "a.vmfb", batch="b")
