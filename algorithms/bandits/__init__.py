"""Private bandit algorithms, vectorised over trials."""
