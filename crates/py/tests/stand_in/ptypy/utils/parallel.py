"""One process."""

size = 1
