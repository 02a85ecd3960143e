"""Speed and memory, measured in one run as ratios to a limit: see README.md."""
