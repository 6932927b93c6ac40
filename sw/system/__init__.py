"""Several machines that share nothing: the system, plans of who does what, and executables for it."""
