"""What runs a network: builder, engine, and the functions that make them."""
