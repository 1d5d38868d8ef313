"""What a screen shows, as QtCore objects without widgets."""
