"""What ``daedal bench`` measures, a suite a module; the hand-written programs have a folder of their own."""
