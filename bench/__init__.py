"""Every figure we claim, and the peer beside it: `make bench`, `make bench-NAME`."""
