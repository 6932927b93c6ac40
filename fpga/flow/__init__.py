"""From a board's system to its configuration file with open tools, and the reports on it."""
