"""Input of models: tables, their columns and files, and checks at the boundary."""
