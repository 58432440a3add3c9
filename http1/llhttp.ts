// Programs that include this file by way of another have no other way to its declarations.
/// <reference path="./undici.d.ts" />
// The parser of Node itself, as undici's package carries it (decision 0025).
import wasm from "undici/lib/llhttp/llhttp_simd-wasm.js";

/*
 * llhttp as WebAssembly: one instance for the process, and in its memory a state of some hundred bytes for each parser and one area
 * for input that all share. It calls back while `llhttp_execute` runs; what it finds is told to the parser that called.
 */

/** What a parser is told while it executes. Positions are offsets in the input area. A result other than 0 ends the execution with that error. */
export interface LlhttpCallbacks {
  onMessageBegin(): number;
  /** Parts of a text may come in several calls. */
  onTarget(at: number, length: number): number;
  onReason(at: number, length: number): number;
  onHeaderName(at: number, length: number): number;
  onHeaderValue(at: number, length: number): number;
  /** 1: the message has no body, whatever its head says. */
  onHeadComplete(status: number, isUpgrade: boolean, keepsAlive: boolean): number;
  onBody(at: number, length: number): number;
  onMessageComplete(): number;
}

interface Exports {
  readonly memory: WebAssembly.Memory;
  readonly _initialize: () => void;
  readonly malloc: (bytes: number) => number;
  readonly llhttp_alloc: (type: number) => number;
  readonly llhttp_free: (parser: number) => void;
  readonly llhttp_execute: (parser: number, data: number, bytes: number) => number;
  readonly llhttp_finish: (parser: number) => number;
  readonly llhttp_resume: (parser: number) => void;
  readonly llhttp_resume_after_upgrade: (parser: number) => void;
  readonly llhttp_get_error_pos: (parser: number) => number;
  readonly llhttp_get_error_reason: (parser: number) => number;
  readonly llhttp_get_http_major: (parser: number) => number;
  readonly llhttp_get_http_minor: (parser: number) => number;
  readonly llhttp_should_keep_alive: (parser: number) => number;
  readonly llhttp_get_method: (parser: number) => number;
  readonly llhttp_method_name: (method: number) => number;
}

/** Kinds of messages, as llhttp numbers them. */
export const REQUEST = 1;
export const RESPONSE = 2;

/** Results of an execution, as llhttp numbers them; all others are errors of the message. */
export const OK = 0;
export const INVALID_VERSION = 9;
export const PAUSED = 21;
export const PAUSED_UPGRADE = 22;
export const HTTP2_PREFACE = 23;

/** The most bytes of input of one execution: as many as Node reads from a socket at once. */
export const INPUT_BYTES_MAX = 64 * 1024;

/** The parser that executes. */
let current: LlhttpCallbacks;

const instance = new WebAssembly.Instance(new WebAssembly.Module(wasm), {
  env: {
    wasm_on_message_begin: () => current.onMessageBegin(),
    wasm_on_url: (_parser: number, at: number, length: number) => current.onTarget(at - input, length),
    wasm_on_status: (_parser: number, at: number, length: number) => current.onReason(at - input, length),
    wasm_on_header_field: (_parser: number, at: number, length: number) => current.onHeaderName(at - input, length),
    wasm_on_header_value: (_parser: number, at: number, length: number) => current.onHeaderValue(at - input, length),
    wasm_on_headers_complete: (_parser: number, status: number, isUpgrade: number, keepsAlive: number) =>
      current.onHeadComplete(status, isUpgrade === 1, keepsAlive === 1),
    wasm_on_body: (_parser: number, at: number, length: number) => current.onBody(at - input, length),
    wasm_on_message_complete: () => current.onMessageComplete(),
  },
});
const llhttp = instance.exports as unknown as Exports;
llhttp._initialize();
const input = llhttp.malloc(INPUT_BYTES_MAX);
let area = new Uint8Array(llhttp.memory.buffer, input, INPUT_BYTES_MAX);

const methods: string[] = [];

/** A text of C. */
function textAt(at: number): string {
  if (at === 0) return "";
  const bytes = Buffer.from(llhttp.memory.buffer, at);
  return bytes.toString("latin1", 0, bytes.indexOf(0));
}

/** A parser's state in the memory of llhttp. Its owner frees it, once. */
export class LlhttpState {
  readonly #pointer: number;

  constructor(type: typeof REQUEST | typeof RESPONSE) {
    this.#pointer = llhttp.llhttp_alloc(type);
  }

  /** Parses `bytes` from `from` to `to`, at most `INPUT_BYTES_MAX` of them. Returns the result; the callbacks have been called by then. */
  execute(callbacks: LlhttpCallbacks, bytes: Uint8Array, from: number, to: number): number {
    // The memory has another buffer when it grew.
    if (area.length === 0) area = new Uint8Array(llhttp.memory.buffer, input, INPUT_BYTES_MAX);
    area.set(from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to));
    current = callbacks;
    return llhttp.llhttp_execute(this.#pointer, input, to - from);
  }

  /** The connection has ended. Returns `OK` when the message may end with it. */
  finish(callbacks: LlhttpCallbacks): number {
    current = callbacks;
    return llhttp.llhttp_finish(this.#pointer);
  }

  /** Where the last execution stopped, as an offset in its input. */
  get stoppedAt(): number {
    return llhttp.llhttp_get_error_pos(this.#pointer) - input;
  }

  /** Why the last execution failed, in words that quote nothing of the input. */
  get reason(): string {
    return textAt(llhttp.llhttp_get_error_reason(this.#pointer));
  }

  /** The method of a request. */
  get method(): string {
    const method = llhttp.llhttp_get_method(this.#pointer);
    methods[method] ??= textAt(llhttp.llhttp_method_name(method));
    return methods[method];
  }

  /** Ten times the major version, plus the minor one. */
  get version(): number {
    return 10 * llhttp.llhttp_get_http_major(this.#pointer) + llhttp.llhttp_get_http_minor(this.#pointer);
  }

  /** Whether another message may follow, by what has come of this one. */
  get keepsAlive(): boolean {
    return llhttp.llhttp_should_keep_alive(this.#pointer) === 1;
  }

  resume(): void {
    llhttp.llhttp_resume(this.#pointer);
  }

  resumeAfterUpgrade(): void {
    llhttp.llhttp_resume_after_upgrade(this.#pointer);
  }

  free(): void {
    llhttp.llhttp_free(this.#pointer);
  }
}
