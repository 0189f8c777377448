"""Tests of jaxbandit.certify."""
