"""Argosy's launcher is a program, not a library: see `argosy --help`, or `python -m argosy --help`."""

# argosy.torch and argosy.paddle may lie in another folder of the path.
__path__ = __import__("pkgutil").extend_path(__path__, __name__)
