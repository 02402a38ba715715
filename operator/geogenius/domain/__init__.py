"""The rules and words of the product, free of input, output and clocks: standard library only."""
