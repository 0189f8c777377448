"""Tests of jaxbandit.sensitivity."""
