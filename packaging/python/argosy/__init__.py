"""Argosy's launcher is a program, not a library: see `argosy --help`, or `python -m argosy --help`."""
