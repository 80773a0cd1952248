"""Knows which checkpoint is whole."""
