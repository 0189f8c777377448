"""Independent reference implementations, written from the papers alone."""
