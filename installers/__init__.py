"""Puts the bundle into each runtime and takes it out again; the `lore` command."""
