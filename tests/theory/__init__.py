"""Tests of jaxbandit.theory."""
