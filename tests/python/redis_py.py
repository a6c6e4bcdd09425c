"""A pytest plugin for redis-py's own tests/test_lock.py: the library in the place of redis.lock.Lock, over RLOCK_URL.

A timeout of None is the longest lease.
"""
import os
import threading
import types

import pytest
import redis
import redis.lock
from redis.exceptions import LockError, LockNotOwnedError

import rlock

SOCKET = os.environ["RLOCK_URL"][len("unix://"):]
FOREVER_MS = 2**32 - 1
LEFT_OUT = {
    "test_lock": "a lock without an end",
    "test_lock_token": "a token of the caller's",
    "test_lock_token_thread_local_false": "a token of the caller's",
    "test_blocking_timeout": "redis-py's own clock is replaced and its sleeps are counted",
    "test_context_manager_blocking_timeout": "likewise",
}
_own = threading.local()


def text_of(value):
    return value.decode() if isinstance(value, bytes) else value


class Lock:
    def __init__(self, redis, name, timeout=None, sleep=0.1, blocking=True, blocking_timeout=None, thread_local=True,
                 raise_on_release_error=True):
        if not hasattr(_own, "client"):
            _own.client = rlock.Client(os.environ["RLOCK_URL"], prefix="")
        self.redis, self.name, self.timeout, self.sleep, self.blocking = redis, name, timeout, sleep, blocking
        self.blocking_timeout, self.raise_on_release_error = blocking_timeout, raise_on_release_error
        lease_ms = FOREVER_MS if timeout is None else int(timeout * 1000)
        self.lock = _own.client.lock(text_of(name), lease_ms)
        self.local = threading.local() if thread_local else types.SimpleNamespace()
        self.local.token = None

    def acquire(self, sleep=None, blocking=None, blocking_timeout=None, token=None):
        if token is not None:
            raise NotImplementedError("the library draws its own nonce")
        wait = self.blocking_timeout if blocking_timeout is None else blocking_timeout
        if not (self.blocking if blocking is None else blocking):
            wait = 0
        if not self.lock.acquire(FOREVER_MS if wait is None else int(wait * 1000)):
            return False
        self.local.token = self.redis.get(self.name)
        return True

    def mine(self, what):
        if self.local.token is None:
            raise LockError("Cannot %s an unlocked lock" % what)

    def release(self):
        self.mine("release")
        self.local.token = None
        if self.lock.release() != rlock.OK:
            raise LockNotOwnedError("Cannot release a lock that's no longer owned")

    def extend(self, additional_time, replace_ttl=False):
        left_ms = 0 if replace_ttl else max(self.redis.pttl(self.name), 0)
        return self.lengthen("extend", left_ms + additional_time * 1000)

    def reacquire(self):
        return self.lengthen("reacquire", (self.timeout or 0) * 1000)

    def lengthen(self, what, ms):
        self.mine(what)
        if self.timeout is None:
            raise LockError("Cannot %s a lock with no timeout" % what)
        if rlock.LOST in (self.lock.shorten(int(ms)), self.lock.extend(int(ms))):
            raise LockNotOwnedError("Cannot %s a lock that's no longer owned" % what)
        return True

    def locked(self):
        return self.lock.client.look(text_of(self.name)) is not None

    def owned(self):
        return self.local.token is not None and self.lock.is_ours()

    def __enter__(self):
        if self.acquire():
            return self
        raise LockError("Unable to acquire lock within the time specified")

    def __exit__(self, *_):
        try:
            self.release()
        except LockError:
            if self.raise_on_release_error:
                raise


redis.lock.Lock = Lock


def pytest_collection_modifyitems(items):
    for item in items:
        if item.name in LEFT_OUT:
            item.add_marker(pytest.mark.skip(reason=LEFT_OUT[item.name]))


def _get_client(cls=redis.Redis, request=None, **options):
    for name in ("single_connection_client", "from_url"):
        options.pop(name, None)
    client = cls(unix_socket_path=SOCKET, **options)
    client.flushdb()
    return client


@pytest.fixture()
def r(request):
    client = _get_client(request=request)
    yield client
    client.flushdb()
