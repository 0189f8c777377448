"""Commands behind the figures in the README; each prints what it measured."""
