"""The same host without a screen; its contract is the command line."""
