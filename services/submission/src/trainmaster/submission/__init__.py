"""Takes job files and requests."""
