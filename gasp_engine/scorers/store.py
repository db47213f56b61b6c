"""What is kept between calls, by content and within a number of bytes; the oldest goes first.

Values are never changed after they are put in, so that they can be handed out without a copy.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from typing import Generic, TypeVar

Value = TypeVar("Value")


class ByteStore(Generic[Value]):
    """A thread-safe store of bounded size.

    Args:
        limit: most bytes; 0 keeps nothing.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._items: OrderedDict[bytes, tuple[Value, int]] = OrderedDict()
        self._used = 0
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """Bytes that the values take."""
        return self._used

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: bytes) -> Value | None:
        """The value, which counts as used now; None when it is not there."""
        with self._lock:
            if key not in self._items:
                return None
            self._items.move_to_end(key)
            return self._items[key][0]

    def put(self, key: bytes, value: Value, size: int) -> None:
        """Keep a value of `size` bytes; one that is larger than the limit is not kept."""
        if size > self.limit:
            return
        with self._lock:
            if key in self._items:
                self._used -= self._items.pop(key)[1]
            self._items[key] = (value, size)
            self._used += size
            while self._used > self.limit:
                self._used -= self._items.popitem(last=False)[1][1]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._items.clear()
            self._used = 0


def content_key(*parts: object) -> bytes:
    """A key for plain values (text, numbers, tuples of them): equal content, equal key."""
    return hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()
