"""The landed results of the bench, and the page that shows them: ``python -m bench.results``.

``files``
    The JSON files beside this one, and the commands of ``daedal bench`` that make them.
``page``
    ``docs/results.md`` and the README's table, made of these files and of the landed figures of synthesis.
``levels_picture``, ``limit_picture``
    Pictures of results.
"""
