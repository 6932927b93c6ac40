"""What the machine computes, in Python: access events and binary32, as the reference of RTL, emulator and tests."""
