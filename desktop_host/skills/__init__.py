"""The skills library: read, matched, versioned, watched, and honest about what is broken."""
