"""Exact moves over situations of any response, choices and rankings: the moves of classes are in `inference/moves`."""
