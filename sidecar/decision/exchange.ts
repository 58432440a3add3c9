import type { ServerExchange } from "../../http/http1/server-exchange.ts";
import { CONTINUE, type RequestHandlers } from "../http/listener.ts";
import { answerProblem, type ResponseDeps } from "../http/responding.ts";
import { type ForwardDeps, forward } from "../upstream/forward.ts";
import { openUpgrade, type UpgradeDeps } from "../upstream/upgrade.ts";
import { type Decided, type DecisionDeps, decide, FAILED, type Passed } from "./decide.ts";
import type { Refuse, RequestKind } from "./evaluate-head.ts";

/* One request of the proxy: `decide.ts` decides it, and this file forwards it to the app or sends the gate's own response. */

export interface ExchangeDeps extends DecisionDeps {
  readonly answering: ResponseDeps;
  readonly forwarding: ForwardDeps;
  readonly upgrading: UpgradeDeps;
}

/** Creates the handlers that begin an exchange for each request. */
export function createGate(deps: ExchangeDeps): RequestHandlers {
  const begin = (kind: RequestKind) => (client: ServerExchange) => new Exchange(deps, client, kind).begin();
  return { request: begin("request"), expectant: begin("expectant"), upgrade: begin("upgrade") };
}

export class Exchange {
  readonly #parts: ExchangeDeps;
  readonly #client: ServerExchange;
  readonly #kind: RequestKind;
  readonly #startedMs = performance.now();

  constructor(deps: ExchangeDeps, client: ServerExchange, kind: RequestKind) {
    this.#parts = deps;
    this.#client = client;
    this.#kind = kind;
  }

  /** Decides and handles the request. Never throws: a failure affects only this request. */
  begin(): void {
    const decided = decide(this.#parts, this.#client, this.#kind, this.#startedMs);
    if (decided instanceof Promise) void decided.then((late) => this.#act(late));
    else this.#act(decided);
  }

  /** Forwards or rejects the request. Never throws. */
  #act(decided: Decided): void {
    try {
      if (decided.kind === "pass") this.#pass(decided);
      else this.#refuse(decided, decided.refusal);
    } catch (error) {
      this.#fail(decided, error);
    }
  }

  #pass({ requestId, shown, admitted, identity }: Passed): void {
    // If the body turned out to be malformed while the decision was pending, a response has already been sent.
    if (this.#client.headersSent || this.#client.isOver) return;
    for (const text of identity) admitted.head.forwarded.push(text);
    admitted.head.forwarded.push("X-Postern-Request-Id", requestId);
    if (this.#kind === "upgrade") {
      // Copies only these members. An upgraded connection may stay open for days, and a reference to `admitted` would keep the policy in
      // memory.
      const { method, path, hash, clientIp } = admitted;
      const { host, forwarded } = admitted.head;
      const additions = { requestId, shown, admission: { method, path, hash, clientIp, head: { host, forwarded } } };
      openUpgrade(this.#parts.upgrading, this.#client, admitted, additions, this.#startedMs);
      return;
    }
    const additions = { requestId, shown, admission: admitted };
    if (this.#kind === "expectant") this.#client.writeInterim(CONTINUE, "");
    forward(this.#parts.forwarding, this.#client, admitted, additions, this.#startedMs);
  }

  #refuse({ requestId, shown }: Decided, { problem, closes }: Refuse): void {
    // The connection closes, because it is unknown whether a client that waits for `100 Continue` will send its body (RFC 9110, 10.1.1).
    const close = closes || this.#kind !== "request";
    answerProblem(this.#parts.answering, this.#client, problem, { requestId, shown, close });
  }

  #fail(decided: Decided, error: unknown): void {
    const { onInternalError } = this.#parts;
    onInternalError(error, decided.requestId);
    try {
      if (!this.#client.headersSent) {
        this.#refuse(decided, FAILED);
        return;
      }
    } catch (answerError) {
      onInternalError(answerError, decided.requestId);
    }
    this.#client.breakOff();
  }
}
