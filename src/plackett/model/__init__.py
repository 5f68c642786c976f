"""The mathematics of the model on K×p arrays. Nothing here sees a row of data."""
