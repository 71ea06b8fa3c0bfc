# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What is wrong with a table of a computed curve."""

from __future__ import annotations


class TheoryTableError(ValueError):
    """A table that names no curve: the key, and what would be right."""

    def __init__(self, key: str, expected: str) -> None:
        super().__init__(expected)
        self.key = key
