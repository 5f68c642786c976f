"""Computation: compiled kernels, vector types, BLAS limits, and division of rows among cores."""
