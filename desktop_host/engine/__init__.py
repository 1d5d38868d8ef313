"""What happens: sessions, turns, tools, permissions, waiting for people, events."""
