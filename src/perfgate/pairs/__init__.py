"""Measuring processes and their turns: base and head in pairs, and candidates once more in a fresh process."""
