"""What other systems say: read once, acted on once, answered."""
