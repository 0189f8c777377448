"""Tests of jaxbandit.search."""
