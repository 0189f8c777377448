"""Tests of jaxbandit.testing."""
