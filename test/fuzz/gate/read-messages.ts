/*
 * A strict parser of HTTP/1.1 messages that belongs to this test: it rejects everything unknown. It shares no code with
 * the parsers of the gate, so that a mistake in one is not repeated in the other.
 */

export interface Message {
  readonly firstLine: string;
  /** Names in lower case. */
  readonly fields: ReadonlyArray<readonly [name: string, value: string]>;
  readonly body: string;
  /** false: the bytes ended before the message did. */
  readonly isComplete: boolean;
}

export class Malformed extends Error {}

const FIELD = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/;

export const valuesOf = ({ fields }: Pick<Message, "fields">, name: string): string[] =>
  fields.filter(([one]) => one === name).map(([, value]) => value);

interface Head {
  readonly firstLine: string;
  readonly fields: Message["fields"];
  readonly end: number;
}

/** Returns undefined when the head is incomplete. Throws `Malformed`. */
function readHead(text: string, start: number): Head | undefined {
  const end = text.indexOf("\r\n\r\n", start);
  if (end === -1) return undefined;
  const [firstLine = "", ...lines] = text.slice(start, end).split("\r\n");
  const fields = lines.map((line) => {
    const found = FIELD.exec(line);
    if (found === null) throw new Malformed(`the field line ${JSON.stringify(line.slice(0, 80))}`);
    return [(found[1] as string).toLowerCase(), found[2] as string] as const;
  });
  return { firstLine, fields, end: end + 4 };
}

type Framing = { kind: "none" } | { kind: "length"; length: number } | { kind: "chunked" } | { kind: "close" };

function framingOf(head: Head, isResponse: boolean): Framing {
  const codings = valuesOf(head, "transfer-encoding");
  const lengths = valuesOf(head, "content-length");
  if (codings.length + lengths.length > 1) throw new Malformed("two fields that say where the body ends");
  if (codings.length === 1) {
    if (codings[0] !== "chunked") throw new Malformed(`the transfer coding ${codings[0]}`);
    return { kind: "chunked" };
  }
  if (lengths.length === 1) {
    if (!/^\d{1,15}$/.test(lengths[0] as string)) throw new Malformed(`the length ${lengths[0]}`);
    return { kind: "length", length: Number(lengths[0]) };
  }
  return { kind: isResponse ? "close" : "none" };
}

interface Body {
  readonly body: string;
  readonly end: number;
  readonly isComplete: boolean;
}

function readBody(text: string, start: number, framing: Framing): Body {
  switch (framing.kind) {
    case "none":
      return { body: "", end: start, isComplete: true };
    case "close":
      return { body: text.slice(start), end: text.length, isComplete: true };
    case "length": {
      const end = Math.min(text.length, start + framing.length);
      return { body: text.slice(start, end), end, isComplete: end - start === framing.length };
    }
    default:
      return readChunks(text, start);
  }
}

function readChunks(text: string, start: number): Body {
  let body = "";
  let at = start;
  for (;;) {
    const lineEnd = text.indexOf("\r\n", at);
    if (lineEnd === -1) return { body, end: text.length, isComplete: false };
    const line = text.slice(at, lineEnd);
    if (!/^[\da-f]{1,8}$/i.test(line)) throw new Malformed(`the chunk size ${JSON.stringify(line.slice(0, 40))}`);
    const size = Number.parseInt(line, 16);
    at = lineEnd + 2;
    if (size === 0) break;
    body += text.slice(at, at + size);
    if (text.length < at + size + 2) return { body, end: text.length, isComplete: false };
    if (text.slice(at + size, at + size + 2) !== "\r\n") throw new Malformed("a chunk longer than its size");
    at += size + 2;
  }
  if (text.startsWith("\r\n", at)) return { body, end: at + 2, isComplete: true };
  // Trailers are lines of a head without its first.
  const trailers = readHead(text, at - 2);
  return trailers === undefined
    ? { body, end: text.length, isComplete: false }
    : { body, end: trailers.end, isComplete: true };
}

/** Returns the first request in `text` and its end; undefined when its head is incomplete. Throws `Malformed`. */
export function readRequest(text: string): { message: Message; end: number } | undefined {
  const head = readHead(text, 0);
  if (head === undefined) return undefined;
  if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+ [\x21-\x7e]+ HTTP\/1\.1$/.test(head.firstLine)) {
    throw new Malformed(`the request line ${JSON.stringify(head.firstLine.slice(0, 80))}`);
  }
  const { body, end, isComplete } = readBody(text, head.end, framingOf(head, false));
  return { message: { ...head, body, isComplete }, end };
}

export interface HttpResponse extends Message {
  readonly status: number;
}

export interface Responses {
  readonly final: readonly HttpResponse[];
  readonly interim: number;
  /** The bytes after a 101; undefined when there was none. */
  readonly tunnel: string | undefined;
}

/** Reads all responses on a connection. `methods` are those of the requests, in order. Throws `Malformed`. */
export function readResponses(text: string, methods: readonly string[]): Responses {
  const final: HttpResponse[] = [];
  let interim = 0;
  for (let at = 0; at < text.length; ) {
    const head = readHead(text, at);
    if (head === undefined) {
      if (!"HTTP/1.1 ".startsWith(text.slice(at, at + 9)) && !text.startsWith("HTTP/1.1 ", at)) {
        throw new Malformed(`bytes that begin no answer: ${JSON.stringify(text.slice(at, at + 80))}`);
      }
      break;
    }
    const status = Number(/^HTTP\/1\.1 (\d{3}) [\t\x20-\x7e]*$/.exec(head.firstLine)?.[1]);
    if (Number.isNaN(status)) throw new Malformed(`the status line ${JSON.stringify(head.firstLine.slice(0, 80))}`);
    if (status === 101) return { final, interim, tunnel: text.slice(head.end) };
    if (status < 100) throw new Malformed(`the status ${status}`);
    if (status < 200) {
      interim += 1;
      at = head.end;
      continue;
    }
    const framing = framingOf(head, true);
    const hasBody = methods[final.length] !== "HEAD" && status !== 204 && status !== 304;
    const { body, end, isComplete } = readBody(text, head.end, hasBody ? framing : { kind: "none" });
    final.push({ ...head, status, body, isComplete });
    at = end;
  }
  return { final, interim, tunnel: undefined };
}
