"""Engines: where passes over the rows run. An engine never sees a prior."""
