"""The demo's model: the network of TensorRT's sampleCharRNN, and weights trained for it."""
