import type { FastifyInstance } from "fastify";
import { PublicError } from "../../../core/errors.ts";
import { sendPage, toHtml } from "../error-pages.ts";
import type { ErrorSender } from "../errors.ts";
import { V1_CODES } from "./errors.ts";

const CODES: ReadonlyMap<string, string> = new Map(Object.entries(V1_CODES));

/** Serves the pages of `error.docs`, one per code of v1. */
export function registerCodePages(app: FastifyInstance, sendError: ErrorSender): void {
  app.get<{ Params: { code: string } }>("/api-reference/errors/code/:code", (request, reply) => {
    const { code } = request.params;
    const meaning = CODES.get(code);
    if (meaning === undefined) sendError(request, reply, new PublicError("not_found", "v1 has no such error code."));
    else {
      sendPage(reply, {
        title: code,
        body: `<h1><code>${code}</code></h1>
<p>${toHtml(meaning)}</p>
<p>A code of the first generation of the API. The <code>requestId</code> finds the request in the logs of the server.</p>`,
      });
    }
  });
}
