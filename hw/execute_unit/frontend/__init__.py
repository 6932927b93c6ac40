"""From tokens to instructions that may be issued: fetch, decode, rename, scoreboard, dispatch."""
