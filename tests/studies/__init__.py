"""Tests of jaxbandit.studies."""
