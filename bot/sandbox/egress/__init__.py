"""What a sandbox may reach of the network: an allow-list of names, the proxy that keeps to it, and presets of names.

Owns the only way out of a sandbox without a network. May import `domain`, `errors` and the rest of `sandbox`.
A new preset is one file in `managers` that asks a package manager, and its entry in `presets.py`.
"""
