"""Values, pure rules and ports; standard library only, no I/O, no clock, no loop."""
