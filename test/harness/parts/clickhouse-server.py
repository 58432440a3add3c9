"""ClickHouse server with the part of the HTTP interface that `@clickhouse/client` uses.

Arguments: the data folder, the port (0 for any), the user's password, and optionally either a configuration file of the engine, which may
contain the user's permissions, or `replicated`, for a single replica with its own Keeper, on which statements ON CLUSTER run without a
cluster. The engine is the Python package chdb-core, which is the server's code without its network interface. Each request gets its own
connection, because it has its own settings and database; requests run concurrently. Unlike the ClickHouse server, this server has no
streams (a response is complete before its first byte is sent), no compression, and no users other than `default`.
"""

import base64
import contextlib
import email.parser
import email.policy
import json
import os
import re
import socket
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from chdb import _chdb

# Python must not write bytecode files next to the sources.
sys.dont_write_bytecode = True
import clickhouse_replicated

FOLDER, PORT, PASSWORD = sys.argv[1], int(sys.argv[2]), sys.argv[3]
# The engine reads its users from the configuration file only if both parameters name the file.
IS_REPLICATED = sys.argv[4:] == ["replicated"]
if IS_REPLICATED:
    clickhouse_replicated.allow()
    with open("replicated.xml", "w", encoding="utf8") as file:
        file.write(clickhouse_replicated.CONFIGURATION)
    ENGINE = f"{FOLDER}?config-file=replicated.xml"
else:
    ENGINE = FOLDER + "".join(f"?config-file={file}&users_config={file}" for file in sys.argv[4:])

# URL parameters that are not settings of the engine.
OF_THE_REQUEST = {"query", "query_id", "database", "default_format", "session_id", "role", "user", "password", "compress",
                  "decompress", "wait_end_of_query", "buffer_size"}
# Settings of HTTP features that this server does not have.
IGNORED = {"enable_http_compression", "send_progress_in_http_headers", "cancel_http_readonly_queries_on_client_close"}
STATUS = {**dict.fromkeys((6, 20, 26, 27, 38, 41, 53, 62, 69, 72, 130, 131, 386, 395), 400),
          **dict.fromkeys((192, 193, 194, 497, 516), 403), **dict.fromkeys((16, 36, 46, 47, 60, 81, 115, 457), 404),
          **dict.fromkeys((159, 160), 408), 164: 500, 48: 501}

# The engine runs while a connection is open, so this one is never closed.
KEEPER = _chdb.connect(ENGINE)
VERSION = KEEPER.query("select version()", "TSV").bytes().decode().strip()


class Refused(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def run(sql, parameters):
    """Returns the result of one query. Raises Refused with the engine's error code."""
    connection = _chdb.connect(ENGINE)
    try:
        database = parameters.get("database", "default")
        connection.query("use `" + database.replace("`", "``") + "`", "TSV")
        settings = {name: value for name, value in parameters.items()
                    if name not in OF_THE_REQUEST and name not in IGNORED and not name.startswith("param_")}
        if settings:
            # One statement sets everything, `readonly` last: the server checks all settings of a request before it applies one.
            names = sorted(settings, key=lambda name: name == "readonly")
            connection.query("set " + ", ".join(f"{name} = {quoted(settings[name])}" for name in names), "TSV")
        params = {name[6:]: value for name, value in parameters.items() if name.startswith("param_")}
        result = connection.query(sql, parameters.get("default_format", "TabSeparated"), params=params)
        if result.has_error():
            raise RuntimeError(result.error_message())
        return result.bytes() or b"", {"read_rows": result.rows_read(), "read_bytes": result.bytes_read(),
                                       "written_rows": result.rows_written(), "written_bytes": result.bytes_written()}
    except RuntimeError as error:
        text = str(error)
        found = re.search(r"Code: (\d+)\. ", text)
        raise Refused(int(found[1]) if found else 1002, f"{text} (version {VERSION})") from None
    finally:
        connection.close()


@contextlib.contextmanager
def cancelled_when_gone(client, parameters):
    """Cancels a reading query whose client closes the connection, if the request enables this."""
    if parameters.get("cancel_http_readonly_queries_on_client_close") != "1" or parameters.get("readonly", "0") == "0":
        yield
        return
    # The engine assigns its own query ids, so the comment identifies the query.
    mark = parameters.setdefault("log_comment", str(uuid.uuid4()))
    ended = threading.Event()

    def watch():
        while not ended.wait(0.1):
            if has_gone(client):
                connection = _chdb.connect(ENGINE)
                connection.query(f"kill query where Settings['log_comment'] = {quoted(mark)} async", "TSV")
                connection.close()

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def has_gone(client):
    try:
        return client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        if urlsplit(self.path).path == "/ping":
            self.read_body()
            self.reply(200, b"Ok.\n")
        else:
            self.answer(readonly=True)

    def do_POST(self):
        self.answer(readonly=False)

    def answer(self, readonly):
        body = self.read_body()
        parameters = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        if readonly:
            parameters.setdefault("readonly", "2")
        query_id = parameters.get("query_id") or str(uuid.uuid4())
        started = time.monotonic_ns()
        try:
            self.authenticate(parameters)
            if self.headers.get_content_type() == "multipart/form-data":
                parameters |= self.fields(body)
                body = b""
            # The query is the URL parameter followed by the body, so that the data of an insert follow its text.
            sql = "\n".join(part for part in (parameters.get("query", ""), body.decode()) if part != "")
            if IS_REPLICATED:
                sql = re.sub(r"^(create [^(]*?) on cluster `[^`]*`", r"\1", sql)
            with cancelled_when_gone(self.connection, parameters):
                data, summary = run(sql, parameters)
        except Refused as error:
            code = {"X-ClickHouse-Exception-Code": str(error.code), "X-ClickHouse-Query-Id": query_id}
            self.reply(STATUS.get(error.code, 500), f"{error}\n".encode(), code)
            return
        summary["elapsed_ns"] = time.monotonic_ns() - started
        self.reply(200, data, {
            "X-ClickHouse-Query-Id": query_id,
            "X-ClickHouse-Summary": json.dumps({name: str(value) for name, value in summary.items()}),
            "X-ClickHouse-Timezone": "UTC",
        })

    def authenticate(self, parameters):
        name, password = parameters.get("user", "default"), parameters.get("password", "")
        kind, _, value = self.headers.get("Authorization", "").partition(" ")
        if kind == "Basic":
            name, _, password = base64.b64decode(value).decode().partition(":")
        if (name, password) != ("default", PASSWORD):
            raise Refused(516, f"Code: 516. DB::Exception: {name}: Authentication failed: password is incorrect, or there is "
                               f"no user with such name. (AUTHENTICATION_FAILED) (version {VERSION})")

    def fields(self, body):
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
        return {part.get_param("name", header="content-disposition"): part.get_payload(decode=True).decode()
                for part in message.iter_parts()}

    def read_body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(chunks)

    def reply(self, status, data, headers=()):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        # Errors of closed connections are not reported.
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(*_)


def end_with_parent(parent):
    """Exits when the parent process has ended, so that a killed test run leaves no engine."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


threading.Thread(target=end_with_parent, args=(os.getppid(),), daemon=True).start()
server = Server(("127.0.0.1", PORT), Handler)
print(f"listening on {server.server_address[1]}", flush=True)
server.serve_forever()
