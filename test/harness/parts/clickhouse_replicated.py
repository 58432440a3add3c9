"""Lets the engine by itself have tables with Replicated engines.

The package has these engines and, with the configuration below, a Keeper in its own memory. What it lacks is the address at which other
replicas would fetch parts: a server takes it from its configuration when it starts to listen, and a replica without one stays read-only. So the
one function that returns it (it throws, as there is none) is replaced in memory by one that returns an address at which nothing listens. A
single replica never uses it. The place is that of one version for one kind of processor; any other is refused.
"""

import ctypes
import platform

CONFIGURATION = """<clickhouse>
  <zookeeper><implementation>testkeeper</implementation></zookeeper>
  <macros><shard>1</shard><replica>one</replica></macros>
  <default_replica_path>/clickhouse/tables/{shard}/{database}/{table}</default_replica_path>
  <default_replica_name>{replica}</default_replica_name>
</clickhouse>
"""

LIBRARY = "_chdb.abi3.so"
PLACE = 0x147217C0
# What the function of this version begins with.
BEGINS = bytes.fromhex("4156534883ec484c8b36")
PAGE = 4096
READ_WRITE_EXECUTE, READ_EXECUTE = 7, 5


def allow():
    """Replaces the function. Raises RuntimeError for another engine than the one that it was found in."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise RuntimeError("Replicated engines are tried on Linux on x86-64 alone")
    with open("/proc/self/maps", encoding="utf8") as maps:
        start = next(int(line.split("-")[0], 16) for line in maps if LIBRARY in line)
    place = start + PLACE
    if ctypes.string_at(place, len(BEGINS)) != BEGINS:
        raise RuntimeError("another engine than the one whose address is known")
    page = ctypes.c_void_p(place & -PAGE)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    size = ctypes.c_size_t(2 * PAGE)
    if protect(page, size, READ_WRITE_EXECUTE) != 0:
        raise RuntimeError("the memory of the engine cannot be changed")
    code = returning(b"127.0.0.1", 1)
    ctypes.memmove(place, code, len(code))
    protect(page, size, READ_EXECUTE)


def returning(host, port):
    """The code of a function that writes a short string (its 23 bytes, then its length) and a port to where RDI points."""
    text = host.ljust(23, b"\0") + bytes([len(host)])
    store = b""
    for offset in (0, 8, 16):
        # mov rcx, the next eight bytes; mov [rdi + offset], rcx
        store += b"\x48\xb9" + text[offset:offset + 8] + b"\x48\x89\x4f" + bytes([offset])
    # mov word [rdi + 24], port; mov rax, rdi; ret
    return store + b"\x66\xc7\x47\x18" + port.to_bytes(2, "little") + b"\x48\x89\xf8\xc3"
