"""Composition root: builds a host, picks a face, owns the loop."""
