"""What a front end asks the device for, in arrays of NumPy and without a word of its framework."""
