import { type AddressInfo, connect, createServer } from "node:net";
import { MessageParser } from "../../../http/http1/message-parser.ts";
import { compileHeadReader } from "../../../sidecar/http/head.ts";
import { passableHead } from "../../../sidecar/upstream/response-head.ts";

/*
 * A gate without what makes it one, to see below what no gate on Node's sockets can come: a connection to the app for each client's, and messages
 * that arrive whole. It is right about nothing else. Prints its address. Usage: node stripped-gate.ts KIND APP, where KIND is one of
 *
 *   copied   what one socket reads the other writes
 *   text     the same, as the gate writes it: as text, and the app's side is read into one buffer
 *   parsed   both messages are parsed as well
 *   heads    and what is written is made from the parsed heads, as the gate makes it
 */
const [kind = "", app = ""] = process.argv.slice(2);
const { hostname: host, port } = new URL(app);
const INPUT = Buffer.allocUnsafeSlow(64 * 1024);
const HEAD_BYTES_MAX = 64 * 1024;
const readHead = compileHeadReader([]);

/** What is written for the bytes that were read. */
type Pass = (bytes: Buffer) => string;

const asText: Pass = (bytes) => bytes.toString("latin1");

function parsed(type: "request" | "response", write: (parser: MessageParser, bytes: Buffer) => string): Pass {
  const parser = new MessageParser(type, HEAD_BYTES_MAX);
  return (bytes) => {
    parser.execute(bytes, 0);
    parser.isHeadNew = false;
    if (parser.phase !== "complete") throw new Error("a message that is not whole");
    return write(parser, bytes);
  };
}

function requestOf({ method, target, headers }: MessageParser): string {
  const { forwarded } = readHead(headers, "1.1");
  let lines = "";
  for (let at = 0; at < forwarded.length; at += 2) lines += `${forwarded[at]}: ${forwarded[at + 1]}\r\n`;
  return `${method} ${target} HTTP/1.1\r\n${lines}connection: keep-alive\r\n\r\n`;
}

function responseOf({ status, reason, headers, body }: MessageParser): string {
  const head = passableHead(
    { status, reason, headers },
    { requestId: undefined, shown: undefined, admission: undefined },
  );
  if (head.kind === "unusable") throw new Error(head.why);
  const content = body === undefined ? "" : body.toString("latin1");
  return `HTTP/1.1 ${status} ${head.reason}\r\n${head.lines}connection: keep-alive\r\n\r\n${content}`;
}

function passes(): [toApp: Pass, toClient: Pass] {
  if (kind === "text") return [asText, asText];
  const [request, response] = kind === "heads" ? [requestOf, responseOf] : [copyOf, copyOf];
  return [parsed("request", request), parsed("response", response)];
}

const copyOf = (_: MessageParser, bytes: Buffer): string => asText(bytes);

const server = createServer({ noDelay: true }, (client) => {
  const common = { host, port: Number(port), noDelay: true };
  const end = (): void => {
    client.destroy();
    upstream.destroy();
  };
  const [toApp, toClient] = kind === "copied" ? [asText, asText] : passes();
  const callback = (count: number): boolean => client.write(toClient(INPUT.subarray(0, count)), "latin1") || true;
  const upstream = connect(kind === "copied" ? common : { ...common, onread: { buffer: INPUT, callback } });
  if (kind === "copied") {
    upstream.on("data", (bytes) => client.write(bytes));
    client.on("data", (bytes) => upstream.write(bytes));
  } else client.on("data", (bytes: Buffer) => upstream.write(toApp(bytes), "latin1"));
  for (const socket of [client, upstream]) socket.on("error", end).on("close", end);
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
process.once("SIGTERM", () => process.exit(0));
