"""The MCP adapter: the only room that knows the `mcp` SDK."""
