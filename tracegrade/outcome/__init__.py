"""Tasks, trials, snapshots and outcomes (DESIGN §6): the world after the run, graded and joined to the trace."""
