"""Desktop Host: a desktop app in which a person talks to a model that works with their MCP tools."""

__version__ = "0.1.0"
