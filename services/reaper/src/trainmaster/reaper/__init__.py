"""Ends, retries and gives back."""
