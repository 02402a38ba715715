"""The composition root: settings in, built parts out. Nothing else reads settings.

One module for each kind of program, so that none of them loads what another one needs.
"""
