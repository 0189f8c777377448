"""Tests of jaxbandit.report."""
