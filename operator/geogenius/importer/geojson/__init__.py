"""GeoJSON read strictly and in bounded memory: a collection cut into features, features parsed one by one."""
