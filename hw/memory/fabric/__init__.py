"""The read fabric: from one stream of requests over the memory ports to the shared return bus."""
