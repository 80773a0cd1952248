"""Reads everything, changes nothing."""
