// The reference gives the declarations to files that import this file indirectly.
/// <reference path="./undici.d.ts" />
// llhttp, the parser of Node itself, from the undici package (decision 0024).
import wasm from "undici/lib/llhttp/llhttp_simd-wasm.js";

/*
 * llhttp as WebAssembly: one instance per process. Each parser has a state of a few hundred bytes, and all parsers share one input area.
 * llhttp calls the callbacks of the current parser while `llhttp_execute` runs.
 */

/**
 * Callbacks of a parser during its execution. Positions are offsets in the input area. A return value other than 0 ends the execution and
 * becomes its error code.
 */
export interface LlhttpCallbacks {
  onMessageBegin(): number;
  /** Called with a part of the request target. A target may arrive in several calls. */
  onTarget(at: number, length: number): number;
  onReason(at: number, length: number): number;
  onHeaderName(at: number, length: number): number;
  onHeaderValue(at: number, length: number): number;
  /** Called at the end of the head. A return value of 1 means that the message has no body, regardless of its head. */
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

/** Message kinds of llhttp. */
export const REQUEST = 1;
export const RESPONSE = 2;

/** Return codes of llhttp. `OK`, `PAUSED` and `PAUSED_UPGRADE` are not errors; every code that is not listed means a malformed message. */
export const OK = 0;
export const INVALID_VERSION = 9;
export const PAUSED = 21;
export const PAUSED_UPGRADE = 22;
export const HTTP2_PREFACE = 23;

/** Maximum input bytes per execution. Node never reads more bytes at once from a socket. */
export const INPUT_BYTES_MAX = 64 * 1024;

/** Callbacks of the parser that is currently executing. */
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

/** Reads a NUL-terminated string. */
function textAt(at: number): string {
  if (at === 0) return "";
  const bytes = Buffer.from(llhttp.memory.buffer, at);
  return bytes.toString("latin1", 0, bytes.indexOf(0));
}

/** State of a parser in the memory of llhttp. Its owner must free it exactly once. */
export class LlhttpState {
  readonly #pointer: number;

  constructor(type: typeof REQUEST | typeof RESPONSE) {
    this.#pointer = llhttp.llhttp_alloc(type);
  }

  /** Parses `bytes` from `from` to `to`, at most `INPUT_BYTES_MAX` bytes. Returns llhttp's result code after all callbacks have run. */
  execute(callbacks: LlhttpCallbacks, bytes: Uint8Array, from: number, to: number): number {
    // When the WebAssembly memory grows, it moves to another `ArrayBuffer`, and views of the old one become empty.
    if (area.length === 0) area = new Uint8Array(llhttp.memory.buffer, input, INPUT_BYTES_MAX);
    area.set(from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to));
    current = callbacks;
    return llhttp.llhttp_execute(this.#pointer, input, to - from);
  }

  /** Handles the end of the connection. Returns `OK` if the message is complete without further bytes. */
  finish(callbacks: LlhttpCallbacks): number {
    current = callbacks;
    return llhttp.llhttp_finish(this.#pointer);
  }

  /** Returns the offset in the input at which the last execution stopped. */
  get stoppedAt(): number {
    return llhttp.llhttp_get_error_pos(this.#pointer) - input;
  }

  /** Returns the reason why the last execution failed. The text quotes no input. */
  get reason(): string {
    return textAt(llhttp.llhttp_get_error_reason(this.#pointer));
  }

  get method(): string {
    const method = llhttp.llhttp_get_method(this.#pointer);
    methods[method] ??= textAt(llhttp.llhttp_method_name(method));
    return methods[method];
  }

  /** HTTP version: ten times the major version plus the minor version. */
  get version(): number {
    return 10 * llhttp.llhttp_get_http_major(this.#pointer) + llhttp.llhttp_get_http_minor(this.#pointer);
  }

  /** Whether another message may follow the current one on the connection. */
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
