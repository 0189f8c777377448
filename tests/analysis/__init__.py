"""Tests of the analysis of results."""
