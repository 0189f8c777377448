"""Tests of tables of measured losses."""
