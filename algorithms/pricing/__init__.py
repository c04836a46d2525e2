"""Private dynamic personalised pricing, vectorised over trials."""
