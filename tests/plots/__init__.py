"""Tests of jaxbandit.plots."""
