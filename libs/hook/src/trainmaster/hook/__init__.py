"""Optional reports from training code, standard library only."""
