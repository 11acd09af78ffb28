"""A model to try netloop with: the network of TensorRT's sampleCharRNN, and weights trained for it."""
