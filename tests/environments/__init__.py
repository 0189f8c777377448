"""Tests of jaxbandit.environments."""
