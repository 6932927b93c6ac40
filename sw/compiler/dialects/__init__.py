"""The compiler's dialects; :func:`daedal.compiler.context.make_context` knows all of them."""
