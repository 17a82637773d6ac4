"""Saved runs: what is in them, and how they get on and off the disk. Standard library only."""
