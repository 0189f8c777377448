"""Tests of jaxbandit.tables."""
