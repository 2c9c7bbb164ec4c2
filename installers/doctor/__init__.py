"""What is really the case, looked at anew: home, programs, service, memory, and each runtime through its own hook.

One module for each part of the machine; each gives `Finding`s and changes nothing. `examine` runs them, `mending` holds what
`lore doctor --fix` may do by itself.
"""
