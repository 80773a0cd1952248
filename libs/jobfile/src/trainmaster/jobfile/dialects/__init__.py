"""Other forms a job file may have, each mapped to the canonical one."""
