"""Tests of runs: what is played, what is kept, what is said."""
