"""Typed HTTP client: `with Client(find_credentials()) as client: client.jobs()`."""
