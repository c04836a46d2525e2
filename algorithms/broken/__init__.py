"""Deliberately broken twins, each with its real privacy: an audit that misses one has failed."""
