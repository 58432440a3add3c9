import { existsSync } from "node:fs";
import { join } from "node:path";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { PublicError } from "../../core/errors.ts";
import { type DashboardFile, followDashboard } from "./dashboard-files.ts";
import { acceptedEncoding, matchesTag } from "./negotiation.ts";

/*
 * Serves the dashboard at /dashboard/, and its files below /dashboard/assets/. All other paths below /dashboard/ return the same page,
 * because the page does its own routing. Signed-in users can create root keys, so the content security policy allows only these scripts,
 * and only requests to this server.
 */

/** Forbids inline code and styles, other hosts, and framing, so that text on the page is never executed as code. */
export const DASHBOARD_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

export const DASHBOARD_HEADERS: Readonly<Record<string, string>> = {
  "Content-Security-Policy": DASHBOARD_POLICY,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
  "X-Frame-Options": "DENY",
};

const YEAR_SECONDS = 31_536_000;

/** Serves the build in `folder` or, without a build, a page that explains how to build the dashboard. */
export function registerDashboardPage(app: FastifyInstance, { folder }: { folder: string }): void {
  const current = followDashboard(folder);
  app.get("/", (request, reply) => {
    const isBrowser = /\btext\/html\b/.test(request.headers.accept ?? "");
    return isBrowser ? reply.redirect("dashboard/", 302) : reply.callNotFound();
  });
  // The redirect is relative, so that it also works below a proxy's path prefix.
  app.get("/dashboard", (_request, reply) => reply.redirect("dashboard/", 308));
  app.get<{ Params: { "*": string } }>("/dashboard/*", async (request, reply) => {
    reply.headers(DASHBOARD_HEADERS);
    const path = request.params["*"];
    const files = await current();
    if (files === undefined) return sendUnbuilt(reply);
    const file = files.find(path) ?? (isAddress(path) ? files.page : undefined);
    if (file === undefined) throw new PublicError("not_found", "The dashboard has no such file.");
    return sendFile(request, reply, file);
  });
}

/** Whether the path may be a route of the page. A missing file is not a route, so that no browser takes HTML for a script. */
const isAddress = (path: string): boolean => !path.startsWith("assets/") && !/(^|[/\\])\.\.?([/\\]|$)|\0/.test(path);

async function sendFile(request: FastifyRequest, reply: FastifyReply, file: DashboardFile): Promise<FastifyReply> {
  const encoding = acceptedEncoding(String(request.headers["accept-encoding"] ?? ""), file.encodings);
  const { bytes, etag } = await file.read(encoding);
  reply
    .header("Cache-Control", file.isHashed ? `public, max-age=${YEAR_SECONDS}, immutable` : "no-cache")
    .header("Vary", "Accept-Encoding")
    .header("ETag", etag);
  if (matchesTag(request.headers["if-none-match"], etag)) return reply.status(304).send();
  if (encoding !== "identity") reply.header("Content-Encoding", encoding);
  return reply.type(file.type).send(bytes);
}

const UNBUILT = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Dashboard · Postern</title></head>
<body><h1>The dashboard is not built</h1>
<p>This server runs from its sources. Build the dashboard with <code>npm run build:dashboard</code>, then load this page again.</p>
</body></html>
`;

const sendUnbuilt = (reply: FastifyReply): FastifyReply =>
  reply.status(503).header("Cache-Control", "no-store").type("text/html; charset=utf-8").send(UNBUILT);

/** Returns the folder of the built dashboard: next to this server's bundle (see scripts/bundle.ts), or in the checkout. */
export function dashboardFolder(): string {
  const bundled = join(import.meta.dirname, "dashboard");
  return existsSync(join(bundled, "index.html")) ? bundled : join(import.meta.dirname, "..", "..", "dashboard", "dist");
}
