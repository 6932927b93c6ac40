"""Made of the encodings: assembler, C++ header, reference page, memory map."""
