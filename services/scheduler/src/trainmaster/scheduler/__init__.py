"""Places jobs."""
