"""The tm command."""
