"""The words of the house: frozen values without I/O, clock or randomness.

May import only `bot.errors`. A new word is a module named by its noun.
"""
