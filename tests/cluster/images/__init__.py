"""Images that tests run, built without a registry."""
