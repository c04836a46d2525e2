"""Releases that both families are built from."""
