"""What enters a model: tables, their columns and files, and the checks at the boundary."""
