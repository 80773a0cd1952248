"""Watches nodes and metrics."""
