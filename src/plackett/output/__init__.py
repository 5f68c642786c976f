"""Output of fitted models: tables, words, files, scores, progress."""
