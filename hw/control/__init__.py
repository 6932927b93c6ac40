"""The host side: control registers, program loader, launch control, counters and completion records."""
