"""The part of the launcher that runs on every node and owns the processes there."""
