/*
 * One connection to the gate, whole: the bytes that the client sends, and the bytes with which the app answers each of its
 * requests. All bytes are Latin-1 text, so that a case can be kept as a file, read by a person, and played again.
 */

export type AppKind = "node" | "raw" | "stream";

export interface AnswerPlan {
  readonly pieces: readonly string[];
  /** Sent when the head of the request is there, or when all of it is. */
  readonly after: "head" | "body";
  readonly ending: "keep" | "end" | "reset";
  /** `whole`: the client gets exactly this. `cut`: it never looks whole to the client. `any`: it gets at most one answer. */
  readonly expect: "whole" | "cut" | "any";
  readonly status: number;
  readonly body: string;
}

export interface ExpectedRequest {
  /** Value of its field `X-Case`. */
  readonly id: string;
  readonly method: string;
  /** undefined where the app's plan says it. */
  readonly status: number | undefined;
  readonly body: string;
}

export interface Case {
  readonly id: string;
  readonly app: AppKind;
  /** Sent one after the other, with a turn of the event loop or a few milliseconds between. */
  readonly client: readonly string[];
  readonly ends: "wait" | "half-close" | "destroy";
  /** What was asked, when all of it is as the standard has it; undefined when nothing can be said of it. */
  readonly requests: readonly ExpectedRequest[] | undefined;
  /** By the id of the request. */
  readonly answers: Readonly<Record<string, AnswerPlan>>;
  /** Sent after a 101, and expected back. */
  readonly tunnel?: string | undefined;
}

/** Makes the gate recognise a caller; known to the generator and written into the store. */
export const FUZZ_KEY = "fuzz_3ZMTPFQy7GEqPuPhxvDLxR";
export const FUZZ_KEY_ID = "key_fuzz";
