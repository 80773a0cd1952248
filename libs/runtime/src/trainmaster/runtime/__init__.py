"""Plumbing every service shares: the log, the reader, the loop, the database."""
