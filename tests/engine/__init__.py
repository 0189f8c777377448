"""Tests of jaxbandit.engine."""
