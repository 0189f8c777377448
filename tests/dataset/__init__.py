"""Tests of jaxbandit.dataset."""
