/*
 * One complete connection to the gate: the bytes that the client sends, and the bytes with which the app responds to each
 * request. All bytes are Latin-1 text, so that a case can be saved as a file, read by a person, and replayed.
 */

export type AppKind = "node" | "raw" | "stream";

export interface ResponsePlan {
  readonly pieces: readonly string[];
  /** Sent when the head of the request has arrived, or all of it. */
  readonly after: "head" | "body";
  readonly ending: "keep" | "end" | "reset";
  /** `whole`: the client gets exactly this. `cut`: it must look incomplete to the client. `any`: the client gets at most one response. */
  readonly expect: "whole" | "cut" | "any";
  readonly status: number;
  readonly body: string;
}

export interface ExpectedRequest {
  /** Value of its field `X-Case`. */
  readonly id: string;
  readonly method: string;
  /** undefined if the app's plan decides it. */
  readonly status: number | undefined;
  readonly body: string;
}

/** A request over HTTP/2. */
export interface FuzzStream {
  readonly method: string;
  readonly path: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** undefined: the head ends the stream. */
  readonly body: readonly string[] | undefined;
  readonly hasTrailers: boolean;
  /** The client resets the stream after so many pieces. */
  readonly resetAfter: number | undefined;
  /** undefined when nothing can be expected of it. */
  readonly expected: ExpectedRequest | undefined;
}

export interface Case {
  readonly id: string;
  readonly app: AppKind;
  /** Sent one after another, with a turn of the event loop or a few milliseconds in between. */
  readonly client: readonly string[];
  readonly ends: "wait" | "half-close" | "destroy" | "reset";
  /** The requests, if all of them are valid; undefined when nothing can be expected of them. */
  readonly requests: readonly ExpectedRequest[] | undefined;
  /** By request id. */
  readonly responses: Readonly<Record<string, ResponsePlan>>;
  /** With these the connection is one of HTTP/2, and `client` has nothing. */
  readonly streams?: readonly FuzzStream[] | undefined;
  /** Sent after a 101, and expected back. */
  readonly tunnel?: string | undefined;
}

/** The key of a known caller; the generator uses it, and it is written into the store. */
export const FUZZ_KEY = "fuzz_3ZMTPFQy7GEqPuPhxvDLxR";
export const FUZZ_KEY_ID = "key_fuzz";

/** Requests to this host, with this header, or with the second segment `denied` and more behind it, never pass. */
export const DENIED_HOST = "denied.test";
export const DENIED_HEADER = "X-Denied";
