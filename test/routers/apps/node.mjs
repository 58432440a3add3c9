// Routers of Node. Prints a line `name port` for each. A guarded path responds `guarded`, every other one `other`.
// Arguments: the folder whose node_modules has Koa and its router, and the guarded paths as JSON.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { serve } from "@hono/node-server";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";

const [folder, json] = process.argv.slice(2);
const paths = JSON.parse(json);
const foreign = createRequire(join(folder, "package.json"));
const Koa = foreign("koa");
const koaRouter = foreign("@koa/router");
const KoaRouter = koaRouter.default ?? koaRouter.Router ?? koaRouter;

const print = (name, server) => console.log(`${name} ${server.address().port}`);
const listen = (name, listener) => {
  const server = createServer(listener).listen(0, "127.0.0.1", () => print(name, server));
};
/** Escapes what path-to-regexp takes for a parameter. It compares with the path as it was sent, so it needs it encoded. */
const escaped = (path) => encodeURI(path).replace(/[\\^$.*+?()[\]{}|:!]/g, "\\$&");

const expressApp = express();
for (const path of paths) expressApp.all(escaped(path), (_req, res) => res.send("guarded"));
for (const path of paths)
  expressApp.all(new RegExp(`^${RegExp.escape(encodeURI(path))}$`), (_req, res) => res.send("guarded"));
expressApp.use((_req, res) => res.send("other"));
listen("express", expressApp);

const fastifyApp = fastify();
for (const path of paths) {
  // `*` and parameters cannot be escaped in a route; `::` is a colon.
  if (!path.includes("*")) fastifyApp.all(path.replaceAll(":", "::"), async () => "guarded");
}
fastifyApp.setNotFoundHandler(async () => "other");
await fastifyApp.listen({ host: "127.0.0.1", port: 0 });
print("fastify", fastifyApp.server);

const koaApp = new Koa();
const router = new KoaRouter();
for (const path of paths) {
  router.all(escaped(path), (ctx) => {
    ctx.body = "guarded";
  });
}
koaApp.use(router.routes());
koaApp.use((ctx) => {
  ctx.body = "other";
});
listen("koa", koaApp.callback());

const hono = new Hono();
for (const path of paths) {
  if (!/[*{]/.test(path)) hono.all(path, (c) => c.text("guarded"));
}
hono.notFound((c) => c.text("other"));
const honoServer = serve({ fetch: hono.fetch, port: 0, hostname: "127.0.0.1" }, () => print("hono", honoServer));
