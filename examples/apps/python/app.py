"""A web app whose users have API keys. Set POSTERN_API_URL, POSTERN_ROOT_KEY and PORT."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import postern


class App(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Buffers a response, so that its head and body are sent together.
    wbufsize = -1

    def do_GET(self) -> None:
        if self.path != "/reports":
            return self.answer(404, {"error": "There is only GET /reports."})
        try:
            caller = postern.verify(self.headers.get("Authorization"), postern.REPORTS)
        except postern.Refusal as refusal:
            return self.answer(refusal.status, {"error": refusal.error}, refusal.headers)
        whom = {"keyId": caller.key_id, "externalId": caller.external_id, "plan": caller.meta.get("plan")}
        self.answer(200, {"reports": [], "for": whom})

    def answer(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3001"))), App)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
