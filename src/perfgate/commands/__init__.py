"""One module per command: its options, and what it does with them."""
