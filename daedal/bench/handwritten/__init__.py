"""Programs in assembler text, written for speed: what the compiler is measured by."""
