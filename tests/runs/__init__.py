"""Tests of jaxbandit.runs."""
