"""The window: bridge, view-models and widgets over one Host."""
