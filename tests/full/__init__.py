"""`make test-full`: what is too much for every run of the tests."""
