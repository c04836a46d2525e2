"""Adversaries: how to score a view so that the two sides of a pair come apart."""
