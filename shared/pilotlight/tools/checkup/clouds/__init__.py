"""Rights that an account has at its cloud, asked of the cloud itself, each with what goes without it."""
