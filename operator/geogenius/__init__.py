"""GeoGenius: a versioned catalog of named geographic areas, filled by imports that run as Kubernetes Jobs."""

__version__ = "0.1.0"
