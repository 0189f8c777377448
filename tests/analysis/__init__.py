"""Tests of jaxbandit.analysis."""
