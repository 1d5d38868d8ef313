"""The widgets that draw the view-models."""
