"""The model adapter: the only room that knows the vendors' SDKs."""
