"""Starts and stops attempts."""
