"""The lock library of <ledgerlock/lock.h> for Python, by ctypes. RLOCK_LIBRARY names the shared library.

with rlock.Client("redis://127.0.0.1:6379") as client:
    with client.lock("report", lease_ms=30000, wait_ms=5000) as lock:
        work(lock.token)
"""
import ctypes as C
import os

OK, BUSY, PARTIAL, GONE, NOT_OWNER, TIMEOUT, LOST, CANCELLED = range(8)
TEXTS = ["url", "password", "prefix"]


class Options(C.Structure):
    _fields_ = [("size", C.c_size_t), ("url", C.c_char_p), ("password", C.c_char_p), ("prefix", C.c_char_p),
                ("connect_ms", C.c_uint32), ("reply_ms", C.c_uint32), ("replicas", C.c_uint32), ("max_lease_ms", C.c_uint32)]


class Held(C.Structure):
    _fields_ = [("name", C.c_char_p), ("len", C.c_size_t), ("holder", C.c_char_p), ("value", C.c_void_p),
                ("value_len", C.c_size_t), ("token", C.c_int64), ("left_ms", C.c_int64), ("text", C.c_char_p)]


_lib = C.CDLL(os.environ.get("RLOCK_LIBRARY", "libledgerlock.so.0"))
for _name, _result, _arguments in [
        ("open", C.c_int, [C.POINTER(C.c_void_p), C.POINTER(Options), C.c_char_p, C.c_size_t]), ("close", None, [C.c_void_p]),
        ("error", C.c_char_p, [C.c_void_p]), ("strerror", C.c_char_p, [C.c_int]), ("new", C.c_void_p, [C.c_void_p]),
        ("free", None, [C.c_void_p]), ("set_text", C.c_int, [C.c_void_p, C.c_char_p]),
        ("lock", C.c_int, [C.c_void_p, C.c_char_p, C.c_uint32, C.c_uint32]), ("token", C.c_int64, [C.c_void_p]),
        ("extend", C.c_int, [C.c_void_p, C.c_uint32]), ("shorten", C.c_int, [C.c_void_p, C.c_uint32]),
        ("verify", C.c_int, [C.c_void_p, C.POINTER(C.c_int64)]), ("release", C.c_int, [C.c_void_p]),
        ("left_ms", C.c_int64, [C.c_void_p]), ("look", C.c_int, [C.c_void_p, C.c_char_p, C.POINTER(Held)])]:
    _function = getattr(_lib, "rlock_" + _name)
    _function.restype, _function.argtypes = _result, _arguments


class Error(Exception):  # code is that of lock.h
    def __init__(self, code, text=b""):
        super().__init__((text or _lib.rlock_strerror(code)).decode())
        self.code = code


class Client:
    def __init__(self, url, **options):
        self._c, why = C.c_void_p(), C.create_string_buffer(200)
        options = {name: value.encode() if name in TEXTS else value for name, value in dict(options, url=url).items()}
        code = _lib.rlock_open(C.byref(self._c), C.byref(Options(size=C.sizeof(Options), **options)), why, len(why))
        if code != OK:
            raise Error(code, why.value)

    def lock(self, name, lease_ms, wait_ms=0, text=None):
        return Lock(self, name, lease_ms, wait_ms, text)

    def look(self, name):
        """The holder as (holder or its text, token, left_ms); None: nobody holds it."""
        held = Held()
        if self.check(_lib.rlock_look(self._c, name.encode(), C.byref(held))) == GONE:
            return None
        return (held.text or held.holder).decode(), held.token, held.left_ms

    def check(self, code):
        if code < 0:
            raise Error(code, _lib.rlock_error(self._c))
        return code

    def close(self):
        _lib.rlock_close(self._c)
        self._c = None

    __enter__, __exit__ = lambda self: self, lambda self, *_: self.close()


class Lock:
    def __init__(self, client, name, lease_ms, wait_ms, text):
        self.client, self.name, self.lease_ms, self.wait_ms = client, name, lease_ms, wait_ms
        self._l, self.call = _lib.rlock_new(client._c), lambda name, *a: client.check(getattr(_lib, "rlock_" + name)(self._l, *a))
        self.call("set_text", text.encode() if text else None)
        for name in ("extend", "shorten", "release", "left_ms"):
            setattr(self, name, lambda *a, name=name: self.call(name, *a))

    def acquire(self, wait_ms=None):
        """True, or False if it was busy all the time."""
        return self.call("lock", self.name.encode(), self.lease_ms, self.wait_ms if wait_ms is None else wait_ms) == OK

    token = property(lambda self: _lib.rlock_token(self._l))

    def is_ours(self):
        return self.call("verify", C.byref(C.c_int64())) == OK

    def free(self):
        _lib.rlock_free(self._l)
        self._l = None

    def __enter__(self):
        if self.acquire():
            return self
        raise Error(TIMEOUT)

    __exit__ = lambda self, *_: self.free()
