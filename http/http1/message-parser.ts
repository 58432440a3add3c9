import {
  HTTP2_PREFACE,
  INPUT_BYTES_MAX,
  INVALID_VERSION,
  type LlhttpCallbacks,
  LlhttpState,
  OK,
  PAUSED,
  PAUSED_UPGRADE,
  REQUEST,
  RESPONSE,
} from "./llhttp.ts";

/*
 * Parses consecutive messages from the bytes of a connection. Only llhttp, in its strict mode, decides on framing. The readers of the
 * head reject ambiguous messages that llhttp accepts.
 *
 *   head ──complete──► body ──complete──► complete ──execute──► head
 *     │                  │                    └── with `isUpgrade`, the rest is not HTTP
 *     └── error ──► failed ◄──┘
 *
 * The fields keep the results of an execution until the next execution, which stops at the end of a message so that the owner decides
 * when to parse the next message.
 */

export type Phase = "head" | "body" | "complete" | "failed";

/** Reason why a message is malformed. `reason` describes the format and quotes no input. */
export interface ParseError {
  /** Kind of the error; `http2` means that the input is the complete HTTP/2 preface. */
  readonly kind: "malformed" | "version" | "overflow" | "http2";
  readonly reason: string;
}

/** Maximum length of a head that is decoded in one step, so that its fields are slices of one string. */
const DECODED_BYTES = 2048;
/** Bytes counted per header in addition to its name and value. */
const HEADER_BYTES = 4;

export class MessageParser implements LlhttpCallbacks {
  phase: Phase = "head";
  fault: ParseError | undefined;
  /** Whether the last execution completed the head. The owner resets this flag. */
  isHeadNew = false;
  target = "";
  status = 0;
  reason = "";
  /** Alternating names and values of the headers, as received. */
  headers: string[] = [];
  /** Alternating names and values of the trailers; `undefined` if there are none. */
  trailers: string[] | undefined;
  isUpgrade = false;
  /** Whether another message may follow on the connection. */
  keepsAlive = false;
  /** Body bytes of the last execution in one buffer: a view of the input if there was one chunk, a copy if there were several. */
  body: Buffer | undefined;
  /** Number of chunks in `body`. A chunk that arrives in several reads counts once per read. */
  chunks = 0;
  /** Whether the response has no body because of its request, for example because that was a HEAD request. */
  isBodyless = false;

  readonly #state: LlhttpState;
  readonly #isResponse: boolean;
  readonly #headBytesMax: number;
  #headBytes = 0;
  #hasBegun = false;
  /** Array that receives parsed names and values: first the headers, then the trailers. */
  #fields: string[] = this.headers;
  #isAtValue = true;
  #input: Buffer = NOTHING;
  /** Offset in the input at which the current call of `llhttp_execute` starts. */
  #from = 0;
  #to = 0;
  #text = "";
  #bodyBytes = 0;
  #isFreed = false;

  constructor(type: "request" | "response", headBytesMax: number) {
    this.#isResponse = type === "response";
    this.#state = new LlhttpState(this.#isResponse ? RESPONSE : REQUEST);
    this.#headBytesMax = headBytesMax;
  }

  /** Whether a part of the head has arrived, but not all of it. */
  get isMidHead(): boolean {
    return this.phase === "head" && this.#hasBegun;
  }

  /** Method of a request. */
  get method(): string {
    return this.#state.method;
  }

  /** HTTP version of the message; 11 means HTTP/1.1. */
  get version(): number {
    return this.#state.version;
  }

  /**
   * Parses from `from` until the message is complete, parsing fails, or the input ends, and returns the offset at which it stopped. If the
   * previous message is complete, parsing begins with the next one. Must not be called after an upgrade was accepted, because the bytes
   * that follow are not HTTP.
   */
  execute(input: Buffer, from: number): number {
    if (this.phase === "complete") this.#begin();
    this.body = undefined;
    this.chunks = 0;
    this.#bodyBytes = 0;
    this.#input = input;
    for (let at = from; at < input.length; ) {
      this.#from = at;
      this.#to = Math.min(input.length, at + INPUT_BYTES_MAX);
      this.#text = "";
      this.#hasBegun = true;
      const result = this.#state.execute(this, input, at, this.#to);
      if (result === OK) {
        at = this.#to;
        continue;
      }
      at += this.#state.stoppedAt;
      // The upgrade was declined, so parsing continues with the rest of the message or with the next message.
      if (result === PAUSED_UPGRADE) this.#state.resumeAfterUpgrade();
      else if (result === PAUSED) {
        this.#state.resume();
        return this.#over(at);
      } else {
        this.#fail(result);
        return this.#over(at);
      }
    }
    return this.#over(input.length);
  }

  /** Handles the end of the connection. Returns whether the message is complete without further bytes. */
  finish(): boolean {
    if (this.phase === "head" || this.phase === "failed") return false;
    if (this.phase === "complete") return true;
    this.body = undefined;
    const result = this.#state.finish(this);
    return (result === OK || result === PAUSED) && this.#phaseNow === "complete";
  }

  /**
   * Returns the headers received so far, and releases them before the next message. If this is called in the middle of a head, the parser
   * must not be used afterwards.
   */
  takeHeaders(): readonly string[] {
    const { headers } = this;
    if (this.#fields === headers) this.#fields = [];
    this.headers = NO_HEADERS;
    return headers;
  }

  free(): void {
    if (this.#isFreed) return;
    this.#isFreed = true;
    this.#state.free();
  }

  get #phaseNow(): Phase {
    return this.phase;
  }

  #begin(): void {
    this.phase = "head";
    this.#hasBegun = false;
  }

  #over(at: number): number {
    if (this.body !== undefined && this.body.length !== this.#bodyBytes)
      this.body = this.body.subarray(0, this.#bodyBytes);
    // Releases all buffers and texts.
    this.#input = NOTHING;
    this.#text = "";
    return at;
  }

  #fail(result: number): void {
    this.phase = "failed";
    if (this.#headBytes > this.#headBytesMax) this.fault = { kind: "overflow", reason: "" };
    else if (result === HTTP2_PREFACE) this.fault = { kind: "http2", reason: this.#state.reason };
    else if (result === INVALID_VERSION) this.fault = { kind: "version", reason: this.#state.reason };
    else this.fault = { kind: "malformed", reason: this.#state.reason };
  }

  onMessageBegin(): number {
    this.#headBytes = 0;
    this.target = "";
    this.reason = "";
    this.headers = [];
    this.#fields = this.headers;
    this.#isAtValue = true;
    this.trailers = undefined;
    return 0;
  }

  onTarget(at: number, length: number): number {
    this.target = this.target === "" ? this.#textOf(at, length) : this.target + this.#textOf(at, length);
    return this.#counted(length);
  }

  onReason(at: number, length: number): number {
    this.reason += this.#textOf(at, length);
    return this.#counted(length);
  }

  onHeaderName(at: number, length: number): number {
    const fields = this.#fields;
    if (this.#isAtValue) {
      this.#isAtValue = false;
      trimLast(fields);
      fields.push(this.#textOf(at, length));
      return this.#counted(length + HEADER_BYTES);
    }
    fields[fields.length - 1] += this.#textOf(at, length);
    return this.#counted(length);
  }

  onHeaderValue(at: number, length: number): number {
    const fields = this.#fields;
    if (!this.#isAtValue) {
      this.#isAtValue = true;
      fields.push(this.#textOf(at, length));
    } else fields[fields.length - 1] += this.#textOf(at, length);
    return this.#counted(length);
  }

  onHeadComplete(status: number, isUpgrade: boolean, keepsAlive: boolean): number {
    this.status = status;
    this.isUpgrade = isUpgrade;
    this.keepsAlive = keepsAlive;
    this.phase = "body";
    this.isHeadNew = true;
    this.trailers = undefined;
    trimLast(this.#fields);
    this.#fields = [];
    if (!this.#isResponse) return 0;
    // These responses have no body, regardless of their headers (RFC 9112, section 6.3).
    const hasNone = this.isBodyless || status < 200 || status === 204 || status === 304;
    return hasNone ? 1 : 0;
  }

  onBody(at: number, length: number): number {
    const start = this.#from + at;
    const chunk = this.#input.subarray(start, start + length);
    this.chunks += 1;
    if (this.body === undefined) this.body = chunk;
    else {
      // The first chunk is a view of the input without spare capacity, so later chunks are never copied into the input.
      const joined = this.body;
      if (joined.length < this.#bodyBytes + length) {
        this.body = Buffer.allocUnsafe(this.#bodyBytes + this.#input.length - start);
        joined.copy(this.body, 0, 0, this.#bodyBytes);
      }
      chunk.copy(this.body, this.#bodyBytes);
    }
    this.#bodyBytes += length;
    return 0;
  }

  onMessageComplete(): number {
    if (this.#fields.length > 0 && this.#fields !== this.headers) {
      trimLast(this.#fields);
      this.trailers = this.#fields;
      // After trailers that contain `Connection: close`, llhttp parses no further message, although this field is not valid in trailers
      // (RFC 9110, section 6.5.1).
      this.keepsAlive &&= this.#state.keepsAlive;
    }
    this.phase = "complete";
    return PAUSED;
  }

  #counted(bytes: number): number {
    this.#headBytes += bytes;
    return this.#headBytes > this.#headBytesMax ? -1 : 0;
  }

  #textOf(at: number, length: number): string {
    if (this.#text === "") {
      this.#text = this.#input.toString("latin1", this.#from, Math.min(this.#to, this.#from + DECODED_BYTES));
    }
    if (at + length <= this.#text.length) return this.#text.substring(at, at + length);
    return this.#input.toString("latin1", this.#from + at, this.#from + at + length);
  }
}

const SPACE = 32;
const TAB = 9;

/**
 * Removes whitespace after the last value, which does not belong to the value (RFC 9112, 5.1). llhttp includes it, because it detects the
 * end of the value only when the next element begins.
 */
function trimLast(fields: string[]): void {
  const last = fields.length - 1;
  if (last < 0) return;
  const value = fields[last] as string;
  let end = value.length;
  while (end > 0 && isBlank(value.charCodeAt(end - 1))) end -= 1;
  if (end < value.length) fields[last] = value.slice(0, end);
}

const isBlank = (code: number): boolean => code === SPACE || code === TAB;
const NOTHING = Buffer.alloc(0);
/** Shared empty array, which is never modified. */
const NO_HEADERS: string[] = [];
