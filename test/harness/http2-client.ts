import { once } from "node:events";
import { connect, type Socket } from "node:net";

/*
 * An HTTP/2 client that writes raw frames, including ones that no library sends. It tracks flow control windows and enforces nothing else.
 */

export const DATA = 0;
export const HEADERS = 1;
export const PRIORITY = 2;
export const RST_STREAM = 3;
export const SETTINGS = 4;
export const PING = 6;
export const GOAWAY = 7;
export const WINDOW_UPDATE = 8;
export const CONTINUATION = 9;

export const END_STREAM = 1;
export const ACK = 1;
export const END_HEADERS = 4;

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD_BYTES = 9;
const WINDOW_BYTES = 65_535;

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export const settings = (pairs: readonly (readonly [id: number, value: number])[] = []): Buffer =>
  frame(
    SETTINGS,
    0,
    0,
    Buffer.concat(
      pairs.map(([id, value]) => {
        const pair = Buffer.alloc(6);
        pair.writeUInt16BE(id);
        pair.writeUInt32BE(value, 2);
        return pair;
      }),
    ),
  );

export function windowUpdate(stream: number, bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return frame(WINDOW_UPDATE, 0, stream, payload);
}

/** Encodes HPACK fields as literals without indexing, or with `isIndexed` adds them to the dynamic table. */
export function fieldBlock(fields: readonly (readonly [name: string, value: string])[], isIndexed = false): Buffer {
  const parts: Buffer[] = [];
  for (const [name, value] of fields) {
    parts.push(Buffer.from([isIndexed ? 0x40 : 0]));
    for (const text of [name, value]) parts.push(integer(text.length, 7), Buffer.from(text, "latin1"));
  }
  return Buffer.concat(parts);
}

/** Encodes an integer with a prefix of `bits` bits (RFC 7541, 5.1). */
function integer(value: number, bits: number): Buffer {
  const max = 2 ** bits - 1;
  if (value < max) return Buffer.from([value]);
  const bytes = [max];
  let rest = value - max;
  for (; rest >= 128; rest >>= 7) bytes.push((rest & 127) | 128);
  return Buffer.from([...bytes, rest]);
}

export const requestFields = (
  method: string,
  path: string,
  more: readonly (readonly [string, string])[] = [],
): (readonly [string, string])[] => [
  [":method", method],
  [":path", path],
  [":scheme", "http"],
  [":authority", "a.test"],
  ...more,
];

export class RawHttp2Client {
  readonly socket: Socket;
  /** Received frames with type, flags, stream and payload. */
  readonly frames: { type: number; flags: number; stream: number; payload: Buffer }[] = [];
  /** Bytes of DATA that may still be sent. */
  window = WINDOW_BYTES;
  readonly windows = new Map<number, number>();
  isClosed = false;
  #rest: Buffer = Buffer.alloc(0);

  constructor(port: number) {
    this.socket = connect({ host: "127.0.0.1", port });
    this.socket.setNoDelay(true);
    this.socket.on("error", () => undefined);
    this.socket.on("close", () => {
      this.isClosed = true;
    });
    this.socket.on("data", (bytes: Buffer) => this.#read(bytes));
  }

  async open(pairs: Parameters<typeof settings>[0] = []): Promise<this> {
    await once(this.socket, "connect");
    this.socket.write(PREFACE);
    this.write(settings(pairs));
    return this;
  }

  write(...frames: readonly Buffer[]): boolean {
    return this.isClosed || this.socket.write(frames.length === 1 ? (frames[0] as Buffer) : Buffer.concat(frames));
  }

  ask(stream: number, fields: Parameters<typeof fieldBlock>[0], flags = END_STREAM): void {
    this.write(frame(HEADERS, END_HEADERS | flags, stream, fieldBlock(fields)));
  }

  windowOf(stream: number): number {
    return Math.min(this.window, this.windows.get(stream) ?? WINDOW_BYTES);
  }

  /** Counts sent bytes of DATA. */
  spend(stream: number, bytes: number): void {
    this.window -= bytes;
    this.windows.set(stream, (this.windows.get(stream) ?? WINDOW_BYTES) - bytes);
  }

  has(type: number, stream: number): boolean {
    return this.frames.some((one) => one.type === type && one.stream === stream);
  }

  /** Error code of GOAWAY, or `undefined` before it. */
  get goneCode(): number | undefined {
    return this.frames.findLast(({ type }) => type === GOAWAY)?.payload.readUInt32BE(4);
  }

  #read(bytes: Buffer): void {
    let all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    for (;;) {
      if (all.length < HEAD_BYTES) break;
      const length = all.readUIntBE(0, 3);
      if (all.length < HEAD_BYTES + length) break;
      const [type, flags, stream] = [all[3] as number, all[4] as number, all.readUInt32BE(5)];
      const payload = all.subarray(HEAD_BYTES, HEAD_BYTES + length);
      this.frames.push({ type, flags, stream, payload: type === DATA ? Buffer.alloc(0) : Buffer.from(payload) });
      all = all.subarray(HEAD_BYTES + length);
      if (type === SETTINGS && (flags & ACK) === 0) this.write(frame(SETTINGS, ACK, 0));
      if (type !== WINDOW_UPDATE) continue;
      const more = payload.readUInt32BE(0);
      if (stream === 0) this.window += more;
      else this.windows.set(stream, (this.windows.get(stream) ?? WINDOW_BYTES) + more);
    }
    this.#rest = all;
  }
}
