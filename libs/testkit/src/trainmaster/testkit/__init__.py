"""Builders, fakes and the simulated log."""
