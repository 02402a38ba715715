"""A real Kubernetes cluster for tests, built and started by the project itself.

`python3 -m tests.cluster up` starts it, `down` leaves nothing behind; tests ask `tests.cluster.providers.cluster()`.
It needs no package of Python, no registry, and once its programs and images are built, no network.
"""
