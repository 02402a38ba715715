"""Names of images: `localhost` keeps every container runtime from looking them up in a registry."""

PAUSE = "localhost/geogenius-pause:1"
BASE = "localhost/geogenius-base:bookworm"
POSTGIS = "localhost/geogenius-postgis:15"
PRODUCT = "localhost/geogenius:test"
