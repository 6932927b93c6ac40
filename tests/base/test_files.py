"""Files that commands write are whole, or as they were."""

import os
import stat
from pathlib import Path

import pytest

from daedal.base.files import write_whole


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_whole(path, b"1")
    path.chmod(0o600)
    write_whole(path, b"22")
    assert path.read_bytes() == b"22" and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


def test_what_cannot_be_written_whole_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1")

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as stream:
            stream.write(data[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"22")
    assert path.read_bytes() == b"1" and [one.name for one in tmp_path.iterdir()] == ["a"]


def test_links_and_devices_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "link").symlink_to("a")
    write_whole(tmp_path / "link", b"22")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "a").read_bytes() == b"22"
    write_whole(Path(os.devnull), b"3")
    assert not Path(os.devnull).is_file()
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(tmp_path / "pipe", b"44")
    assert os.read(reader, 10) == b"44"
    os.close(reader)
