"""A real Kubernetes cluster for tests, built and started by the project itself."""
