"""The import document: what users write, checked once, and its one normal form."""

from geogenius.manifest.document import load, normal_form, parse

__all__ = ["load", "normal_form", "parse"]
