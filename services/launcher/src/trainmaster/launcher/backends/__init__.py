"""What really starts ranks: one module for each kind of pool.

A backend is a pure request and a thin client (`process.rank_request`,
`process.ProcessBackend`). It starts, finds, signals and sweeps; it decides nothing and
never speaks to the log. What it says is in `model`.
"""
