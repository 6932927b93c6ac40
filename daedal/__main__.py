"""``python -m daedal``: the same as the ``daedal`` command."""

from daedal.cli import main

main()
