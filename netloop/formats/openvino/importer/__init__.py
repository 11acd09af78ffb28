"""The OpenVINO importer: from a model to a network."""
