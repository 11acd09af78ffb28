"""What a network is made of, whatever its kinds of layers."""
