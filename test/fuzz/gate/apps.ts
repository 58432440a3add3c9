import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { isIdentityHeader } from "../../../core/policies/identity-headers.ts";
import { type AppKind, DENIED_HEADER, DENIED_HOST, FUZZ_KEY, FUZZ_KEY_ID, type ResponsePlan } from "./case.ts";
import { Malformed, type Message, readRequest, valuesOf } from "./read-messages.ts";
import { digest } from "./requests.ts";

/*
 * The apps behind the gates: a plain Node server; one on a bare socket that parses strictly and responds as the case
 * says; one that streams, and speaks after an upgrade. Each checks everything that reaches it, and reports problems.
 */

export interface FuzzApp {
  readonly kind: AppKind;
  readonly url: string;
  close(): Promise<void>;
}

export interface AppDeps {
  /** The response that a case plans for a request; undefined for an unknown request. */
  readonly planFor: (id: string) => ResponsePlan | undefined;
  /** Something passed the gate that must not pass. `id` is the request's `X-Case`. */
  readonly complain: (app: AppKind, id: string, complaint: string) => void;
  /** Called for each request that came through. */
  readonly onSeen: () => void;
}

export function startApps(parts: AppDeps): Promise<FuzzApp[]> {
  return Promise.all([
    startNodeApp(makeChecker(parts, "node")),
    startRawApp(parts, makeChecker(parts, "raw")),
    startStreamApp(makeChecker(parts, "stream")),
  ]);
}

type Checker = (seen: Pick<Message, "fields"> & { target: string }) => string;

const ADDED_FIELDS: ReadonlySet<string> = new Set([
  "x-postern-key-id",
  "x-postern-workspace-id",
  "x-postern-api-id",
  "x-postern-request-id",
]);
const HOPS = ["keep-alive", "te", "trailer", "proxy-connection", "proxy-authorization", "http2-settings", "expect"];
const UNSAFE_PATH = /\/(?:\/|\.{1,2}(?:\/|$))|%2e|%2f|%5c|%00|\\|[^\x21-\x7e]/i;

const DENIED_PATH = /^\/[^/]+\/(?:d|%64)enied(?:;[^/]*)?(?:\/|$)/i;
const DENIED_AUTHORITY = new RegExp(`^${DENIED_HOST.replace(".", "\\.")}\\.?(?::|$)`, "i");
const cgiName = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, "_");

/** Checks a request as an app received it. Returns its `X-Case`. */
function makeChecker({ complain: complainOf, onSeen }: AppDeps, app: AppKind): Checker {
  const complain = (id: string, text: string): void => complainOf(app, id, text);
  const requestIds = new Set<string>();
  return ({ fields, target }) => {
    onSeen();
    const one = (name: string) => valuesOf({ fields }, name);
    const id = one("x-case").join();
    const [requestId = "", ...more] = one("x-postern-request-id");
    if (more.length > 0 || !/^req_[0-9A-Za-z]{16}$/.test(requestId))
      complain(id, "it has no one request id of the gate");
    if (requestIds.has(requestId)) complain(id, "two requests have one request id: it was sent twice, or smuggled");
    requestIds.add(requestId);

    const names = fields.map(([name]) => name);
    for (const name of names) {
      if (isIdentityHeader(name) && !ADDED_FIELDS.has(name)) complain(id, `the field ${name} got through`);
      if (HOPS.includes(name)) complain(id, `the hop-by-hop field ${name} got through`);
    }
    if (one("upgrade").some((protocol) => protocol !== "websocket")) complain(id, "another upgrade than to WebSocket");
    const keyIds = one("x-postern-key-id");
    const path = target.split("?")[0] ?? "";
    if (keyIds.some((keyId) => keyId !== FUZZ_KEY_ID) || keyIds.length > 1) complain(id, "a forged key id got through");
    if (keyIds.length === 0 && !/^\/open(?:\/|$)/.test(path)) complain(id, `${target} was reached without a key`);
    if (DENIED_PATH.test(path)) complain(id, `${target} is denied by a template`);
    if (one("host").some((host) => DENIED_AUTHORITY.test(host))) complain(id, "the host is denied");
    if (names.some((name) => cgiName(name) === cgiName(DENIED_HEADER))) complain(id, "the request has a denied header");
    if (UNSAFE_PATH.test(path)) complain(id, `${JSON.stringify(target)} can be read in two ways`);
    if (one("authorization").includes(`Bearer ${FUZZ_KEY}`) || one("x-api-key").includes(FUZZ_KEY)) {
      complain(id, "the app sees the key");
    }
    return id;
  };
}

const fieldsOf = ({ rawHeaders }: IncomingMessage): Message["fields"] =>
  rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [[name.toLowerCase(), rawHeaders[at + 1] ?? ""] as const] : []));

async function startNodeApp(judge: Checker): Promise<FuzzApp> {
  const server = createHttpServer(async (req, res) => {
    const id = judge({ fields: fieldsOf(req), target: req.url ?? "" });
    let body = "";
    try {
      for await (const chunk of req.setEncoding("latin1")) body += chunk;
    } catch {
      return;
    }
    res.writeHead(200, { "X-Saw": id }).end(req.method === "HEAD" ? undefined : digest(body));
  });
  return listening("node", server, server);
}

const STREAMED_PIECES = 8;

/** Streams the digest of a body piece by piece; after an upgrade, echoes what it receives. */
async function startStreamApp(judge: Checker): Promise<FuzzApp> {
  const server = createHttpServer((req, res) => {
    const id = judge({ fields: fieldsOf(req), target: req.url ?? "" });
    const hasTrailers = req.method !== "HEAD" && req.httpVersion === "1.1";
    res.writeHead(200, { "X-Saw": id, ...(hasTrailers ? { Trailer: "X-T" } : {}) });
    const pieces: Buffer[] = [];
    req.on("data", (chunk: Buffer) => void pieces.push(chunk));
    req.on("end", () => {
      const text = digest(Buffer.concat(pieces).toString("latin1"));
      const each = text.length / STREAMED_PIECES;
      let sent = 0;
      const sendNext = (): void => {
        if (res.destroyed) return;
        res.write(text.slice(sent, sent + each));
        sent += each;
        if (sent < text.length) setImmediate(sendNext);
        else {
          if (hasTrailers) res.addTrailers({ "X-T": "1" });
          res.end();
        }
      };
      sendNext();
    });
    req.on("error", () => {});
  });
  server.on("upgrade", (req: IncomingMessage, socket: Socket, head: Buffer) => {
    judge({ fields: fieldsOf(req), target: req.url ?? "" });
    socket.on("error", () => socket.destroy());
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    socket.write(head);
    socket.pipe(socket);
  });
  return listening("stream", server, server);
}

async function startRawApp({ planFor, complain }: AppDeps, judge: Checker): Promise<FuzzApp> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let text = "";
    /** The request whose head has been read, and which may be incomplete. */
    let current: { markWhole: () => void } | undefined;
    let sending: Promise<unknown> = Promise.resolve();
    const onRequest = ({ firstLine, fields }: Message): void => {
      const [method = "", target = ""] = firstLine.split(" ");
      const id = judge({ fields, target });
      const plan = planFor(id) ?? defaultPlan(id, method);
      const { promise, resolve } = Promise.withResolvers<void>();
      current = { markWhole: resolve };
      isTunnel = valuesOf({ fields }, "upgrade").length > 0 && / 101 /.test(plan.pieces.join("").slice(0, 200));
      if (isTunnel) resolve();
      sending = Promise.all([sending, plan.after === "body" ? promise : undefined]).then(() => sendPlan(socket, plan));
    };
    // Bytes after an upgrade that was answered with 101 are not HTTP any more, whatever they look like.
    let isTunnel = false;
    const onData = (): void => {
      for (;;) {
        const read = isTunnel ? undefined : readRequest(text);
        if (read === undefined) return;
        if (current === undefined) onRequest(read.message);
        if (!read.message.isComplete) return;
        current?.markWhole();
        current = undefined;
        text = text.slice(read.end);
      }
    };
    socket.on("error", () => {});
    socket.on("end", () => socket.end());
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      try {
        onData();
      } catch (error) {
        if (!(error instanceof Malformed)) throw error;
        const [, id = ""] = /x-case: (\S+)/i.exec(text) ?? [];
        complain("raw", id, `the gate sent what is not HTTP/1.1: ${error.message}`);
        socket.destroy();
      }
    });
  });
  return listening("raw", server, server);
}

const defaultPlan = (id: string, method: string): ResponsePlan => {
  const body = method === "HEAD" ? "" : "default";
  const pieces = [`HTTP/1.1 200 OK\r\nX-Saw: ${id}\r\nContent-Length: ${body.length}\r\n\r\n${body}`];
  return { pieces, after: "body", ending: "keep", expect: "whole", status: 200, body };
};

async function sendPlan(socket: Socket, { pieces, ending }: ResponsePlan): Promise<void> {
  for (const piece of pieces) {
    if (socket.destroyed) return;
    socket.write(piece, "latin1");
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (ending === "end") socket.end();
  else if (ending === "reset") socket.resetAndDestroy();
}

async function listening(
  kind: AppKind,
  server: Server,
  closable: Server & { closeAllConnections?(): void },
): Promise<FuzzApp> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    kind,
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      const closed = once(server, "close");
      closable.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
