import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { entityTag, matchesTag } from "./entity-tag.ts";

/*
 * A page to browse the OpenAPI document, and to try the API from the browser. It loads nothing from other hosts: the few
 * files that it needs of swagger-ui-dist are served from here, and read when they are first requested.
 */

/**
 * Scripts and styles come only from our own files, and calls go only to this server: a person who types a root key into the page
 * must be able to trust it with that. The images that the styles hold are data.
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

/** Addresses are relative, so that the page also works below a path of a proxy. */
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

/** Without the validator of swagger.io, and without \`?url=\`, so that the document is always this server's. */
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
  /** The content, made or read at its first request. */
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

/** Serves the page at `/docs`, and its files below that. `makesCalls`: whether the API is at the same address. */
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
      // The next request tries again.
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
      // A browser caches it but revalidates, because it changes with an upgrade.
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
