"""Boards: the core with its memory and its host link, as designs that open tools turn into bitstreams."""
