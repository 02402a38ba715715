"""The only code that speaks to the Kubernetes API: one attempt per decision, and every answer is a value."""
