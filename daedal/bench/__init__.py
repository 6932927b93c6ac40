"""What ``daedal bench``, ``daedal sim``, ``daedal report`` and ``daedal tune`` run and measure.

``workloads``
    Layers with seeded tables and index streams.
``suites``, ``handwritten``
    What is measured; ``registry`` has all suites by name, ``suite`` says what one is.
``run``, ``limit``, ``host``
    One workload on one machine, compared with PyTorch; the cycles that the same lines would take if no request depended
    on another; the same operation in PyTorch on this computer, against the bandwidth of its memory.
``report``
    Results as tables, JSON, SVG and HTML.
"""
