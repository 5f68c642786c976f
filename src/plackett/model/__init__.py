"""Mathematics of the model on K×p arrays. This package sees no rows of data."""
