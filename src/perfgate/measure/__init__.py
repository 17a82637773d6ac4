"""How numbers come about: clocks, passes, warm-up, stopping, checks, and the procedure that puts them in order."""
