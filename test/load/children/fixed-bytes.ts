import { createServer } from "node:net";

/*
 * The baseline for a procedure: a bare `net` server that reads a request's head into names and values, waits for as many bytes of a body
 * as it announces, and answers fixed bytes. Prints its address. Usage: node raw-server.ts BODY
 */
const body = process.argv[2] ?? "";
const RESPONSE = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
);

const server = createServer({ noDelay: true }, (socket) => {
  let text = "";
  socket.setEncoding("latin1");
  socket.on("data", (data: string) => {
    text += data;
    for (;;) {
      const end = text.indexOf("\r\n\r\n");
      if (end === -1) return;
      const length = Number(parseHead(text, end).get("content-length") ?? 0);
      if (text.length < end + 4 + length) return;
      text = text.slice(end + 4 + length);
      socket.write(RESPONSE);
    }
  });
  socket.on("error", () => {});
});

function parseHead(text: string, end: number): Map<string, string> {
  const headers = new Map<string, string>();
  const [request = "", ...lines] = text.slice(0, end).split("\r\n");
  const [method = "", target = ""] = request.split(" ");
  headers.set(":method", method).set(":path", target);
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  return headers;
}

server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object" && address !== null) console.log(`http://127.0.0.1:${address.port}`);
});
process.once("SIGTERM", () => process.exit(0));
