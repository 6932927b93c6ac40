"""Faults of what keeps the driver and builds whole when something else goes wrong."""

from tests.mutate.fault import area

LAUNCHER, ALLOCATOR, KEPT = "sw/driver/launcher.py", "sw/driver/allocator.py", "daedal/base/cache.py"
OWNED = "daedal/base/process_resource.py"
FAULTS_OF_LAUNCHES, ENDS = (f"tests/driver/test_{name}.py -k emulator" for name in ("launch_faults", "device_ends"))
INTERRUPTS, BUILDS = "tests/driver/test_interrupts.py -k emulator", "tests/base/test_cache.py -m 'not slow'"
ACCESSES = "tests/driver/test_interrupts.py -k at_each_line"

plant = area("robustness", FAULTS_OF_LAUNCHES)

FAULTS = [
    plant("reads-unread", "missing term", LAUNCHER, "read.overlaps(written) for", "False for",
          "what reads the output of a launch with a fault runs again"),
    plant("unknown-reads", "missing case", LAUNCHER, "if reads is None or", "if",
          "what reads who knows what runs again behind a fault"),
    plant("needs-of-needs", "missing case", LAUNCHER, "launch.task.needs(each.task) for each in lost",
          "launch.task.needs(each.task) for each in list(failed)", "what needs a launch that is cancelled runs again"),
    plant("late-need", "missing check", LAUNCHER, "if each.failed), None)", "if False), None)",
          "a launch for which there was no room runs although what it needs has failed"),
    plant("place-in-use", "missing check", LAUNCHER,
          "while any(each.task.slot == self._slot for each in self._flying):",
          "while len(self._flying) == len(self._slots):", "two launches at a time have one launch block"),
    plant("all-cancelled", "lost strobe", LAUNCHER, "self._stop(why, _independent(behind, [launch]))",
          "self._stop(why)", "all behind a fault are cancelled"),
    plant("cancelled-at-work", "missing term", LAUNCHER, "stopped = [self._flying[0], launch]", "stopped = [launch]",
          "a launch that does not end begins again when another one's time is over"),
    plant("program-stays-damaged", "lost strobe", LAUNCHER,
          "self._target.mem_write(task.program, resident.raw)", "pass", "a damaged program is not written anew"),
    plant("block-stays-damaged", "sticky bit", LAUNCHER,
          "        self._behind = [None] * len(self._slots)\n        try:", "        try:",
          "damaged copies behind launch blocks stay"),
    plant("mended-for-ever", "missing check", LAUNCHER, "launch.task.can_be_repeated and not launch.mended",
          "not launch.mended", "a launch of which nothing is known is run again"),
    plant("interrupt-forgotten", "lost strobe", LAUNCHER, 'self._stopping = "a call was interrupted"', "pass",
          "nothing says that a launch was begun and not finished", ACCESSES),
    plant("fork-unseen", "missing check", OWNED, "if self._process != os.getpid():", "if False:",
          "a forked process uses the parent's device", ENDS),
    plant("fork-hangs", "lost strobe", OWNED, "        owned.free_lock()", "        pass",
          "a forked process waits for a thread that it has not", ENDS),
    plant("close-in-use", "lost strobe", OWNED, "        with self.lock:\n            if not",
          "        if True:\n            if not", "a machine goes while a thread is at work in it", ENDS),
    plant("close-waits", "lost strobe", OWNED, "        self._is_closed = True\n", "",
          "who waits in a machine goes on waiting while it is closed", ENDS),
    plant("owner-unread", "sticky bit", ALLOCATOR, "if each.owner() is not None}", "if True}",
          "memory that nobody keeps is lost", INTERRUPTS),
    plant("table-half-known", "missing check", "sw/driver/tables.py",
          "resident is not None and resident.origin.place == place", "place in self._names",
          "a table that was dropped by half is looked for", ACCESSES),
    plant("digest-unread", "missing check", KEPT, '.read_text(encoding="ascii") == digest(place)', '.exists()',
          "what is damaged is used", BUILDS),
    plant("folder-digest", "missing term", KEPT, "{file.relative_to(place)}", "",
          "names in a folder do not matter", BUILDS),
    plant("folders-left", "lost strobe", KEPT, "            _clear_away(left)", "            pass",
          "folders of builds that were killed stay", BUILDS),
    plant("folder-in-use", "missing check", KEPT, "fcntl.LOCK_EX | fcntl.LOCK_NB", "fcntl.LOCK_UN",
          "a folder in which somebody works is cleared away", BUILDS),
    plant("compilers-left", "lost strobe", "cosim/builder/process_guard.py",
          "    os.killpg(0, signal.SIGKILL)", "    pass",
          "compilers go on after whoever wanted them was killed", BUILDS),
]  # fmt: skip
