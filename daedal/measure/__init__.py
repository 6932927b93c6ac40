"""What ``daedal bench`` and ``daedal report`` measure: workloads, runs, limits, the host beside them, pictures.

``workloads``
    Layers with seeded tables and index streams; ``streams`` and ``reuse`` say how indices are drawn.
``run``
    One workload on one machine: compared with PyTorch, its figures as a row.
``limit``
    The cycles that the same lines would take if no request depended on another.
``host``
    The same operation in PyTorch on this computer, against the bandwidth of its memory.
``sweep``, ``known``
    The widths of rows, as a table for a page; the limit itself on traffic whose best figure is known.
``document``, ``pictures``, ``timeline``, ``page``
    Results as tables, JSON, SVG and HTML.
"""
