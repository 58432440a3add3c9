import { performance } from "node:perf_hooks";
import type { FastifyInstance } from "fastify";
import { PublicError } from "../../core/errors.ts";
import { Slots, type Slotted } from "../../edge/slots.ts";
import type { Deps } from "../deps.ts";
import type { ApiReply, ApiRequest } from "./api-request.ts";
import type { ErrorSender } from "./errors.ts";

/** A request with a running handler. */
export interface RunningRequest extends Slotted {
  readonly request: ApiRequest;
  readonly reply: ApiReply;
  /** Time at which the handler started, as `performance.now()`. */
  readonly startedMs: number;
}

const SWEEP_MS = 1000;

export interface Deadlines {
  begin(running: RunningRequest): void;
  /** Ends a request. Returns false if it had already ended, either at its deadline or because the client disconnected. */
  end(running: RunningRequest): boolean;
}

/**
 * Responds with 408 to a request that has taken `timeoutMs`, and logs 499 for a request whose client disconnected before the response. One
 * sweep per second checks all requests, because a timer per request would cost more, and a timeout that is up to a second late is
 * acceptable.
 */
export function createDeadlines(
  app: FastifyInstance,
  { log }: Pick<Deps, "log">,
  { timeoutMs, sendError }: { timeoutMs: number; sendError: ErrorSender },
): Deadlines {
  const all = new Slots<RunningRequest>();

  function end(running: RunningRequest): boolean {
    // If the request has ended already, the handler's result is ignored.
    if (!all.remove(running)) return false;
    if (!running.reply.isDisconnected()) return true;
    const { request } = running;
    log.info(
      { requestId: request.id, url: request.routeOptions.url, status: 499, kind: "client_closed_request" },
      "client closed request",
    );
    return false;
  }

  function sweep(): void {
    const nowMs = performance.now();
    for (const running of all) {
      const { request, reply, startedMs } = running;
      if (reply.isDisconnected()) end(running);
      else if (nowMs - startedMs > timeoutMs && end(running)) {
        const seconds = timeoutMs / 1000;
        sendError(
          request,
          reply,
          new PublicError("request_timeout", `The request took longer than ${seconds} seconds.`),
        );
      }
    }
  }

  const timer = setInterval(sweep, Math.min(SWEEP_MS, timeoutMs));
  timer.unref();
  app.addHook("onClose", async () => clearInterval(timer));
  return {
    begin: (running) => all.add(running),
    end,
  };
}
