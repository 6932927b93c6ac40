"""What all packages may use: the cache, files of users, messages, and the end of a command."""
