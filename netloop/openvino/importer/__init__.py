"""OpenVINO models to networks."""
