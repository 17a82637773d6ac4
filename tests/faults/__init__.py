"""What goes wrong, row by row of the fault matrix: each test bears the id of its row."""
