"""From nothing to an answered question: a cluster, a PostGIS, the operator, one import."""
