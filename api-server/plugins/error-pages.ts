import type { FastifyInstance, FastifyReply } from "fastify";
import { ERROR_KINDS, type ErrorKindRow, PublicError } from "../../core/errors.ts";
import type { ErrorSender } from "./errors.ts";

/*
 * Pages to which the URLs in `error.type` point by default: one per kind, and an index. They are generated from the table of kinds, so
 * every kind has a page.
 */

const STYLE = `body{font:16px/1.6 system-ui,sans-serif;max-width:42rem;margin:3rem auto;padding:0 1rem;color:#1c2330;background:#fff}
code{font:14px/1.4 ui-monospace,monospace;background:#eef1f5;padding:.1em .3em;border-radius:3px}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.5rem .75rem .5rem 0;border-bottom:1px solid #dde2ea}
a{color:#1a56b0}@media(prefers-color-scheme:dark){body{color:#dde2ea;background:#151a22}code{background:#242c38}
th,td{border-color:#333d4d}a{color:#8ab4f8}}`;

const KINDS: ReadonlyMap<string, ErrorKindRow> = new Map(Object.entries(ERROR_KINDS));

/** Content security policy: the pages need only their own style; scripts and other resources are forbidden. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'";

/** Sends a page with this title and HTML body. */
export function sendPage(
  reply: FastifyReply,
  { title, body }: { readonly title: string; readonly body: string },
): void {
  reply.header("Content-Security-Policy", POLICY).type("text/html; charset=utf-8").send(page(title, body));
}

export function registerErrorPages(app: FastifyInstance, sendError: ErrorSender): void {
  const list = listPage();
  app.get("/errors", (_request, reply) => {
    sendPage(reply, list);
  });
  app.get<{ Params: { kind: string } }>("/errors/:kind", (request, reply) => {
    const { kind } = request.params;
    const row = KINDS.get(kind);
    if (row === undefined) sendError(request, reply, new PublicError("not_found", "There is no error of this kind."));
    else sendPage(reply, kindPage(kind, row));
  });
}

const kindPage = (kind: string, { status, title, explanation }: ErrorKindRow) => ({
  title: `${kind} (${status})`,
  body: `<h1><code>${kind}</code></h1>
<p>Status <strong>${status}</strong>, ${escapeHtml(title)}</p>
<p>${toHtml(explanation)}</p>
<p>The <code>requestId</code> in <code>meta</code> finds the request in the logs of the server.</p>
<p><a href="../errors">All kinds of errors</a></p>`,
});

function listPage() {
  const rows = [...KINDS].map(
    ([kind, { status, explanation }]) =>
      `<tr><td>${status}</td><td><a href="errors/${kind}"><code>${kind}</code></a></td><td>${toHtml(explanation)}</td></tr>`,
  );
  return {
    title: "Errors",
    body: `<h1>Errors</h1>
<p>Every kind of error that the API answers with. The last segment of <code>error.type</code> is the kind.</p>
<table><thead><tr><th>Status</th><th>Kind</th><th>Meaning</th></tr></thead><tbody>
${rows.join("\n")}
</tbody></table>`,
  };
}

const page = (title: string, body: string): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · Postern</title><style>${STYLE}</style></head>
<body>
${body}
</body></html>
`;

/** Converts plain text to HTML. Text in backticks becomes a `code` element. */
export const toHtml = (text: string): string => escapeHtml(text).replaceAll(/`([^`]+)`/g, "<code>$1</code>");

const escapeHtml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
