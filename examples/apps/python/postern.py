"""Verifies API keys with Postern, as a gate does. Requires Python 3.11 and no packages."""

import json
import logging
import os
import re
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

API_URL = os.environ.get("POSTERN_API_URL", "http://127.0.0.1:8080").rstrip("/")
ROOT_KEY = os.environ.get("POSTERN_ROOT_KEY")
if not ROOT_KEY:
    raise SystemExit("set POSTERN_ROOT_KEY to a root key that has api.*.verify_key")

# Requirements of a request to /reports: a permission and a rate limit of its key.
REPORTS = {
    "permissions": "reports.read",
    "ratelimits": [{"name": "reports", "limit": 10, "duration": 60_000}],
}
# Timeout of a verification. The request is then rejected, because its key cannot be checked.
DEADLINE_S = 2.0
# Maximum length of a key; longer ones are rejected without a call.
KEY_LENGTH_MAX = 512
ANSWER_BYTES_MAX = 4_000_000

# urllib's timeout applies to each socket operation, so the call runs in a thread with a deadline.
_calls = ThreadPoolExecutor(max_workers=32, thread_name_prefix="postern")
# Opens connections without a proxy, even if the environment has proxy variables.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Caller:
    """Owner of a verified key. `external_id` is your id of the user; None for a key without an owner."""

    key_id: str
    external_id: str | None
    meta: dict[str, object]


class Refusal(Exception):
    """The request is rejected with this response."""

    def __init__(self, status: int, error: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.headers = headers or {}


def verify(authorization: str | None, asked: dict) -> Caller:
    """Verifies the key of an Authorization header. Raises `Refusal` if the request is rejected."""
    found = re.fullmatch(r"bearer +(\S+)", (authorization or "").strip(), re.IGNORECASE)
    if found is None or len(found[1]) > KEY_LENGTH_MAX:
        raise _not_authenticated("An API key is needed: Authorization: Bearer KEY")
    call = _calls.submit(_ask, {"key": found[1], **asked}, time.monotonic() + DEADLINE_S)
    try:
        return _caller_of(call.result(timeout=DEADLINE_S)["data"])
    except Refusal:
        raise
    except Exception as error:
        call.cancel()
        # The reason is logged and not shown to the caller.
        logging.error("verification failed: %s %s", type(error).__name__, error)
        raise Refusal(503, "API keys cannot be verified now.", {"Retry-After": "1"}) from error


def _ask(question: dict, until: float) -> dict:
    request = urllib.request.Request(
        f"{API_URL}/v2/keys.verifyKey",
        data=json.dumps(question).encode(),
        headers={"Authorization": f"Bearer {ROOT_KEY}", "Content-Type": "application/json"},
    )
    try:
        with _opener.open(request, timeout=DEADLINE_S) as response:
            content = b""
            while piece := response.read1(65_536):
                content += piece
                if time.monotonic() > until or len(content) > ANSWER_BYTES_MAX:
                    raise TimeoutError("the answer takes too long, or is too long")
            return json.loads(content)
    except urllib.error.HTTPError as error:
        # A rejected key also has status 200; any other status concerns the call, such as a root key without permission.
        raise RuntimeError(f"{error.code}: {error.read(1000).decode(errors='replace')}") from error


def _caller_of(data: dict) -> Caller:
    if data["valid"]:
        return Caller(data["keyId"], data.get("identity", {}).get("externalId"), data.get("meta", {}))
    match data["code"]:
        case "NOT_FOUND" | "DISABLED" | "EXPIRED":
            raise _not_authenticated("The API key is not valid.")
        case "RATE_LIMITED":
            reset = max(limit["reset"] for limit in data["ratelimits"] if limit["exceeded"])
            seconds = max(1, -int(-(reset / 1000 - time.time()) // 1))
            raise Refusal(429, "Too many requests.", {"Retry-After": str(seconds)})
        case "USAGE_EXCEEDED":
            raise Refusal(429, "The API key has no credits left.")
        case _:
            # INSUFFICIENT_PERMISSIONS, FORBIDDEN, and codes that later versions may add.
            raise Refusal(403, "The API key may not do this.")


def _not_authenticated(error: str) -> Refusal:
    return Refusal(401, error, {"WWW-Authenticate": "Bearer"})
