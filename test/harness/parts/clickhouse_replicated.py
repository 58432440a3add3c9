"""Enables tables with Replicated engines in chdb-core.

The package contains these engines and, with the configuration below, an in-memory Keeper. It lacks the address at which other replicas
would fetch parts: a server reads it from its configuration when it starts to listen, and a replica without an address stays read-only. So
the function that returns the address, and throws without one, is replaced in memory by a function that returns an unused address. A single
replica never connects to it. The function's location is known for one version and processor type; others are rejected.
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
# First bytes of the function in this version.
BEGINS = bytes.fromhex("4156534883ec484c8b36")
PAGE = 4096
READ_WRITE_EXECUTE, READ_EXECUTE = 7, 5


def allow():
    """Replaces the function. Raises RuntimeError if the function is not at the known location."""
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
    """Returns the code of a function that writes a short string (23 bytes and a length) and a port to the address in RDI."""
    text = host.ljust(23, b"\0") + bytes([len(host)])
    store = b""
    for offset in (0, 8, 16):
        # mov rcx, the next eight bytes; mov [rdi + offset], rcx
        store += b"\x48\xb9" + text[offset:offset + 8] + b"\x48\x89\x4f" + bytes([offset])
    # mov word [rdi + 24], port; mov rax, rdi; ret
    return store + b"\x66\xc7\x47\x18" + port.to_bytes(2, "little") + b"\x48\x89\xf8\xc3"
