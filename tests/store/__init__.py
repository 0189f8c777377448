"""Tests of jaxbandit.store."""
