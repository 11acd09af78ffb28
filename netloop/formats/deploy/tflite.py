"""Networks as models of LiteRT, the runtime for small devices that was called TensorFlow Lite."""

from pathlib import Path

from netloop.formats.deploy import stablehlo
from netloop.formats.deploy.refusal import refused
from netloop.formats.deploy.tensorflow_module import TF, module_of
from netloop.model.network import INetworkDefinition
from netloop.process.atomic_write import write_whole


def write(
    network: INetworkDefinition, path: Path, shapes: stablehlo.Shapes | None, batch: str | None, tf32: bool
) -> None:
    """Write the model, of LiteRT's own operators only; its signature takes the inputs and returns the outputs by name.

    Raises:
        ValueError: a batch is asked for, which a model of fixed shapes has not.
        NetworkError: the converter refuses the program.
    """
    if batch is not None:
        raise ValueError("a model of LiteRT has fixed shapes: leave out batch, and give shapes")
    module, function = module_of(network, shapes, batch, tf32)
    converter = TF.lite.TFLiteConverter.from_concrete_functions([function], module)
    try:
        model = converter.convert()
    except Exception as error:  # the converter has an error class of its own, in no public module
        raise refused("LiteRT's converter", error) from error
    write_whole(path, [model])
