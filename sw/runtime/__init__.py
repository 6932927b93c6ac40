"""The runtime: what a compiled program needs to run on a device, call by call, without the compiler.

It imports neither the compiler nor xDSL, and PyTorch only once it is given a tensor. What a call needs of them, such as
a program for another kind of input, comes as a callable, or as an object of ``host_program.HostProgram``.
"""
