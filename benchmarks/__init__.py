"""Measurements, printed as ratios within one run. `make bench` runs them all; a name runs one."""
