"""What the mathematics runs on: compiled kernels, vectors of eight, one BLAS thread, rows shared out to cores."""
