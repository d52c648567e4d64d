"""The generated calls, by family."""
