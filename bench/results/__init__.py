"""The landed results of the bench, and the pages that show them: ``python -m bench.results``.

``files``
    The JSON files beside this one, and the commands of ``daedal bench`` that make them.
``page``, ``shapes_page``, ``boards_page``
    ``docs/results.md`` and the README's table, and the pages of shapes and of boards, made of these files and of the
    landed figures of synthesis.
``peers``
    The table beside another engine.
``levels_picture``, ``limit_picture``
    Pictures of results.
"""
