"""The base dependencies alone: everything works or refuses in words."""

import subprocess
import sys
from pathlib import Path


def test_all_works_or_refuses_in_words_without_optional_libraries():
    script = Path(__file__).with_name("base_only.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "datasets.load: plackett.datasets needs pandas" in done.stdout  # the libraries are blocked
