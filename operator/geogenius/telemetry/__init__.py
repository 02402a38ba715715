"""What our programs tell those who run them: log lines, metrics, and whether they live."""
