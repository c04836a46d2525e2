"""Mechanisms to audit: reference implementations of both families, and broken twins."""
