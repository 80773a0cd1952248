"""The tables of fields: what a job file may say, and what becomes of it."""
