"""Tests of the store: what is written, what is verified, and what is done about damage."""
