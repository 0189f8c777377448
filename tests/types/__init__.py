"""Tests of jaxbandit.types."""
