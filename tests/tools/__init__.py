"""Tests of the tools that make figures for the documents."""
