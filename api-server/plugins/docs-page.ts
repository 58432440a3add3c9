import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { procedures } from "../v2/index.ts";
import { entityTag, matchesTag } from "./negotiation.ts";
import { buildOpenApi, registerOpenApi } from "./openapi.ts";

/*
 * Page to browse the OpenAPI document, and to try the API from the browser. It loads nothing from other hosts: this server serves the few
 * required files of swagger-ui-dist, and reads them on first request.
 */

/**
 * Scripts and styles come only from this server's files, and calls go only to this server, because users type root keys into the page. The
 * styles contain images as data URLs.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** HTML of the page. Its paths are relative, so that the page also works below a proxy's path prefix. */
const PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>API · Postern</title>
<link rel="icon" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css"></head>
<body><div id="page"></div>
<noscript><p>This page needs JavaScript. The document itself is at <a href="openapi.json">openapi.json</a>.</p></noscript>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body></html>
`;

/** Start script. It disables the validator of swagger.io, and ignores `?url=`, so that the page always shows this server's document. */
const start = (makesCalls: boolean): string => `SwaggerUIBundle({${makesCalls ? "" : "\n  supportedSubmitMethods: [],"}
  url: "openapi.json",
  dom_id: "#page",
  deepLinking: true,
  validatorUrl: null,
  queryConfigEnabled: false,
  persistAuthorization: false,
  defaultModelsExpandDepth: 0,
  docExpansion: "none",
  presets: [SwaggerUIBundle.presets.apis],
});
`;

interface Asset {
  readonly type: string;
  /** Returns the content. Called on first request. */
  readonly read: () => Promise<Buffer>;
}

const HTML = "text/html; charset=utf-8";
const SCRIPT = "text/javascript; charset=utf-8";

const text = (value: string) => async () => Buffer.from(value);

const packaged = (name: string) => () => readFile(fileURLToPath(import.meta.resolve(`swagger-ui-dist/${name}`)));

const assets = (makesCalls: boolean): Readonly<Record<string, Asset>> => ({
  "/docs": { type: HTML, read: text(PAGE) },
  "/docs/start.js": { type: SCRIPT, read: text(start(makesCalls)) },
  "/docs/swagger-ui-bundle.js": { type: SCRIPT, read: packaged("swagger-ui-bundle.js") },
  "/docs/swagger-ui.css": { type: "text/css; charset=utf-8", read: packaged("swagger-ui.css") },
  "/docs/favicon-32x32.png": { type: "image/png", read: packaged("favicon-32x32.png") },
});

/**
 * Serves the page at `/docs`, and its files below that path. `makesCalls`: whether users can call the API from the page, which requires
 * that both have the same origin.
 */
export function registerDocsPage(app: FastifyInstance, { makesCalls }: { makesCalls: boolean }): void {
  for (const [path, asset] of Object.entries(assets(makesCalls))) app.get(path, serve(asset));
}

interface Content {
  readonly bytes: Buffer;
  readonly etag: string;
}

function serve({ type, read }: Asset) {
  let content: Promise<Content> | undefined;
  const findContent = (): Promise<Content> => {
    content ??= readContent(read).catch((error) => {
      // Drops a failed read, so that the next request retries it.
      content = undefined;
      throw error;
    });
    return content;
  };
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { bytes, etag } = await findContent();
    reply
      .header("Content-Security-Policy", POLICY)
      .header("X-Content-Type-Options", "nosniff")
      .header("Referrer-Policy", "no-referrer")
      // Lets browsers cache the file, but makes them revalidate it, because an upgrade can change the file.
      .header("Cache-Control", "no-cache")
      .header("ETag", etag);
    if (matchesTag(request.headers["if-none-match"], etag)) return reply.status(304).send();
    return reply.type(type).send(bytes);
  };
}

async function readContent(read: Asset["read"]): Promise<Content> {
  const bytes = await read();
  return { bytes, etag: entityTag(bytes) };
}

/** OpenAPI documents by path. */
export type Documents = Readonly<Record<string, () => object>>;

/** Serves the OpenAPI documents of v2 and of old versions. */
export function registerDocuments(app: FastifyInstance, old: Documents = {}): void {
  registerOpenApi(app, { "/openapi.json": () => buildOpenApi(procedures), ...old });
}
