"""Co-simulation: Verilator and C++ builds, clock loop and memory models in C++, and targets made of them."""
