"""sampleCharRNN with TensorRT's runtime classes: a plan, a runtime, a context, and a list of addresses for each step.

``hiddenIn`` shares its buffer with ``hiddenOut``, and ``cellIn`` with ``cellOut``, so each step reads the states that
the previous step wrote. This is safe because a run reads all inputs before it writes the first output.

    python samples/tensorrt_char_rnn.py

It prints the inputs and outputs, and a seed with its continuation:

    INPUT  data (1, 160)
    INPUT  hiddenIn (2, 160)
    INPUT  cellIn (2, 160)
    INPUT  seqLen ()
    OUTPUT hiddenOut (2, 160)
    OUTPUT cellOut (2, 160)
    OUTPUT pred (1, 1)
    ROMEO:
    Whose the court the court
"""

import numpy as np

import netloop as trt
from netloop.tools.demo import char_rnn

LOGGER = trt.Logger(trt.Logger.WARNING)
SHARED = {"hiddenOut": "hiddenIn", "cellOut": "cellIn"}


def build(model: char_rnn.CharRnn) -> trt.IHostMemory:
    """Build the plan of a network that computes one step."""
    builder = trt.Builder(LOGGER)
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.GPU_FALLBACK)
    return builder.build_serialized_network(char_rnn.step_network(model), config)


def allocate(engine: trt.ICudaEngine) -> dict[str, np.ndarray]:
    """Return buffers of zeros for the inputs and outputs, in the order of the engine."""
    buffers: dict[str, np.ndarray] = {}
    for name in (engine.get_tensor_name(index) for index in range(engine.num_io_tensors)):
        print(f"{engine.get_tensor_mode(name).name:6} {name} {engine.get_tensor_shape(name)}")
        zeros = np.zeros(engine.get_tensor_shape(name), trt.nptype(engine.get_tensor_dtype(name)))
        buffers[name] = buffers.get(SHARED.get(name, ""), zeros)
    return buffers


def generate(model: char_rnn.CharRnn, seed: str, length: int) -> str:
    """Return the continuation of a seed."""
    engine = trt.Runtime(LOGGER).deserialize_cuda_engine(build(model))
    context = engine.create_execution_context()
    buffers = allocate(engine)
    buffers["seqLen"][...] = 1
    addresses = [buffer.ctypes.data for buffer in buffers.values()]
    embedding = model.arrays[char_rnn.EMBEDDING]

    def step(character: int) -> int:
        buffers["data"][0] = embedding[character]
        if not context.execute_v2(addresses):
            raise RuntimeError("the run failed; the log has the reason")
        return buffers["pred"].item()

    *read, last = char_rnn.encode(seed)
    for character in read:
        step(character)
    generated = [step(last)]
    while len(generated) < length:
        generated.append(step(generated[-1]))
    return char_rnn.decode(generated)


def main() -> None:
    """Print the continuation of a text."""
    print("ROMEO" + generate(char_rnn.load(char_rnn.WEIGHTS), "ROMEO", 27))


if __name__ == "__main__":
    main()
