"""Networks as SavedModels, which TensorFlow, its server and its C library run by XLA."""

import tempfile
from pathlib import Path

from netloop.formats.deploy import stablehlo
from netloop.formats.deploy.tensorflow_module import TF, module_of
from netloop.model.network import INetworkDefinition


def write(
    network: INetworkDefinition, path: Path, shapes: stablehlo.Shapes | None, batch: str | None, tf32: bool
) -> None:
    """Write the folder; its signature ``serving_default`` takes the inputs and returns the outputs by name.

    Raises:
        FileExistsError: the folder is there, and is not empty.
        OSError: it cannot be written.
    """
    module, function = module_of(network, shapes, batch, tf32)
    with tempfile.TemporaryDirectory(prefix=f"{path.name}.", dir=path.absolute().parent) as name:
        whole = Path(name) / path.name
        TF.saved_model.save(module, str(whole), signatures=function)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise FileExistsError(f"{str(path)!r} is there already: remove it, or give another name")
        whole.replace(path)
