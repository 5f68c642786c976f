"""Data on the workers of a Dask cluster. Nothing here knows a prior; `plackett.engines.dask` is the engine."""
