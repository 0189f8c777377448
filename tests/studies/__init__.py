"""Tests of study files and of the studies that results carry."""
