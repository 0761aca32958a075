"""Programs of others that tests run, if they can be had."""

import os
import shutil
import sys
from pathlib import Path

import pytest

HELM = shutil.which("helm", path=str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"])
"""Pinned where there is a wheel for the machine; elsewhere `make helm` installs it."""

needs_helm = pytest.mark.skipif(HELM is None, reason="no helm: make helm installs it")
