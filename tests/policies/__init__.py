"""Tests of jaxbandit.policies."""
