"""What each kind of layer means: one file a family, one class a kind."""
