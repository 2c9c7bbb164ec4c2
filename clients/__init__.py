"""The thin client of a Lore server, and what we know of each agent runtime."""
