"""From measurements to verdicts: works from saved files alone, without torch and pytest."""
