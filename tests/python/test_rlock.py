"""The binding over a server at RLOCK_URL, and beside redis-py's own lock where redis-py is installed."""
import os
import threading
import unittest

import rlock

try:
    import redis
except ImportError:
    redis = None

URL = os.environ["RLOCK_URL"]


class Locks(unittest.TestCase):
    def setUp(self):
        self.a, self.b = rlock.Client(URL), rlock.Client(URL)

    def tearDown(self):
        self.a.close()
        self.b.close()

    def test_held_lock_is_busy_until_it_is_released(self):
        mine, other = self.a.lock("k", 60000), self.b.lock("k", 60000)
        self.assertTrue(mine.acquire())
        self.assertFalse(other.acquire())
        self.assertFalse(other.acquire(wait_ms=100))
        self.assertEqual(mine.release(), rlock.OK)
        self.assertTrue(other.acquire())
        self.assertGreater(other.token, mine.token)
        other.free()
        mine.free()

    def test_block_releases_and_tells_who_holds(self):
        with self.a.lock("k", 60000, text="host-7") as mine:
            who, token, left_ms = self.b.look("k")
            self.assertEqual((who, token), ("host-7", mine.token))
            self.assertTrue(0 < left_ms <= 60000)
            with self.assertRaises(rlock.Error) as busy, self.b.lock("k", 60000):
                pass
            self.assertEqual(busy.exception.code, rlock.TIMEOUT)
        self.assertIsNone(self.b.look("k"))

    def test_waiter_is_woken(self):
        mine, got = self.a.lock("k", 60000), []
        self.assertTrue(mine.acquire())
        thread = threading.Thread(target=lambda: got.append(self.b.lock("k", 60000).acquire(wait_ms=30000)))
        thread.start()
        self.assertEqual(mine.release(), rlock.OK)
        thread.join()
        self.assertEqual(got, [True])
        mine.free()

    def test_lease_is_extended_and_shortened(self):
        with self.a.lock("lease", 9000) as mine:
            self.assertEqual(mine.extend(60000), rlock.OK)
            self.assertGreater(mine.left_ms(), 9000)
            self.assertEqual(mine.shorten(5000), rlock.OK)
            self.assertLessEqual(mine.left_ms(), 5000)
            self.assertTrue(mine.is_ours())

    def test_server_that_is_not_there_is_a_fault(self):
        with rlock.Client("unix:///nowhere/redis.sock") as c:
            with self.assertRaises(rlock.Error) as fault:
                c.lock("k", 60000).acquire()
            self.assertEqual(fault.exception.code, -2)
        with self.assertRaises(rlock.Error):
            rlock.Client("http://host")

    @unittest.skipIf(redis is None, "redis-py is not installed")
    def test_redis_py_and_the_library_exclude_each_other(self):
        server = redis.Redis(unix_socket_path=URL[len("unix://"):])
        theirs = server.lock("lock:k", timeout=60, blocking=False)
        mine = self.a.lock("k", 60000)
        self.assertTrue(theirs.acquire())
        self.assertFalse(mine.acquire())
        theirs.release()
        self.assertTrue(mine.acquire())
        self.assertFalse(theirs.acquire())
        mine.free()


if __name__ == "__main__":
    unittest.main()
