"""Tests of jaxbandit.random."""
