"""Commands behind the measured figures of README and docs; each prints its measurements."""
