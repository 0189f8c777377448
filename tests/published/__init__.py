"""Tests of jaxbandit.published."""
