"""Watches the cluster and keeps requests, runs and Jobs in step. The only home of kopf."""
