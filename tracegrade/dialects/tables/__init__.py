"""One file a dialect: facts only."""
