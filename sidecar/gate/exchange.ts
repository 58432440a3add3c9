import type { ServerExchange } from "../../http1/server-exchange.ts";
import { type ForwardParts, forward } from "../app/forward.ts";
import { openUpgrade, type UpgradeParts } from "../app/upgrade.ts";
import { type AnswerParts, answerProblem } from "../http/answering.ts";
import { CONTINUE, type RequestHandlers } from "../http/listener.ts";
import { type Decided, type DecisionParts, decide, FAILED, type Passed } from "./decide.ts";
import type { Refuse, RequestKind } from "./judge.ts";

/*
 * One request of the proxy: it is decided (`decide.ts`), and then it is forwarded to the app or gets a response of our own.
 */

export interface ExchangeParts extends DecisionParts {
  readonly answering: AnswerParts;
  readonly forwarding: ForwardParts;
  readonly upgrading: UpgradeParts;
}

/** Begins an exchange with each request. */
export function createGate(parts: ExchangeParts): RequestHandlers {
  const begin = (kind: RequestKind) => (client: ServerExchange) => new Exchange(parts, client, kind).begin();
  return { request: begin("request"), expectant: begin("expectant"), upgrade: begin("upgrade") };
}

/** One request, from its head to the app or to a response of our own. */
export class Exchange {
  readonly #parts: ExchangeParts;
  readonly #client: ServerExchange;
  readonly #kind: RequestKind;
  readonly #startedMs = performance.now();

  constructor(parts: ExchangeParts, client: ServerExchange, kind: RequestKind) {
    this.#parts = parts;
    this.#client = client;
    this.#kind = kind;
  }

  /** Never throws: a failure here affects only this request. */
  begin(): void {
    const decided = decide(this.#parts, this.#client, this.#kind, this.#startedMs);
    if (decided instanceof Promise) void decided.then((late) => this.#act(late));
    else this.#act(decided);
  }

  /** Never throws. */
  #act(decided: Decided): void {
    try {
      if (decided.kind === "pass") this.#pass(decided);
      else this.#refuse(decided, decided.refusal);
    } catch (error) {
      this.#fail(decided, error);
    }
  }

  #pass({ requestId, shown, onward, identity }: Passed): void {
    // Its body turned out to be malformed meanwhile, which was the response.
    if (this.#client.headersSent || this.#client.isOver) return;
    for (const text of identity) onward.head.forwarded.push(text);
    onward.head.forwarded.push("X-Postern-Request-Id", requestId);
    if (this.#kind === "upgrade") {
      // An upgraded connection may stay for days. It must not keep the policy that let it in.
      const { method, path, hash, clientIp } = onward;
      const additions = { requestId, shown, admission: { method, path, hash, clientIp } };
      openUpgrade(this.#parts.upgrading, this.#client, onward, additions, this.#startedMs);
      return;
    }
    const additions = { requestId, shown, admission: onward };
    if (this.#kind === "expectant") this.#client.writeInterim(CONTINUE, "");
    forward(this.#parts.forwarding, this.#client, onward, additions, this.#startedMs);
  }

  #refuse({ requestId, shown }: Decided, { problem, closes }: Refuse): void {
    // A client that waits for 100 Continue may send its body or not (RFC 9110, 10.1.1).
    const close = closes || this.#kind !== "request";
    answerProblem(this.#parts.answering, this.#client, problem, { requestId, shown, close });
  }

  #fail(decided: Decided, error: unknown): void {
    const { onFault } = this.#parts;
    onFault(error, decided.requestId);
    try {
      if (!this.#client.headersSent) {
        this.#refuse(decided, FAILED);
        return;
      }
    } catch (answerError) {
      onFault(answerError, decided.requestId);
    }
    this.#client.breakOff();
  }
}
