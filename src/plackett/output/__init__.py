"""What is told of a fitted model: tables, words, files, scores, progress."""
