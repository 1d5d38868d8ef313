"""Servers that misbehave in known ways, and what a test needs around the real supervisor."""
