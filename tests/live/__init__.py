"""Live runs of real frameworks against what their own tools logged; a developers' command, not a test of CI."""
