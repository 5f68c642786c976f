"""Published results of other programs, fitted again: theirs, ours, difference."""
