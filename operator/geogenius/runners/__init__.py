"""Ways to get a run executed, all behind one contract: yes, no, or not known."""
