"""SQLite: journal, drafts, blobs, search, grants and usage."""
