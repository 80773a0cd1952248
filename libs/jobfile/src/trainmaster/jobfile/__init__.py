"""The job file: text in, a spec out, or every fault of it at once. Pure."""
