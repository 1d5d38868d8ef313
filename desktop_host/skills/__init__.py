"""Skills on disk to choices; the only room that knows `watchdog` and `frontmatter`."""
