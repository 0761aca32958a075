"""Settings for these tests."""

import pytest

pytest.register_assert_rewrite("agreement.headlines", "agreement.printed")
