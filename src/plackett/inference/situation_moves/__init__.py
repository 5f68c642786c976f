"""Exact moves over situations (choices and rankings) with any response; `inference/moves` has those of classes."""
