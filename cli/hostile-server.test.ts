import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ApiCli, openApiCli, runPostern } from "./test/api-cli.ts";

/* Responses that contain terminal codes or keep a command busy. */

/** Sets the title and colors, starts a new line, contains an 8-bit CSI, and reverses the text direction. */
const HOSTILE = "\u001b]0;owned\u0007\u001b[31m\r\nforged\u009b2J\u202e\u200b$(touch owned)";
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach the terminal.
const COMMANDING = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/;

let cli: ApiCli;
let server: Server;
let url: string;
let dir: string;
let keyId: string;
let keyFile: string;
let apiId: string;
let requestId: string;
beforeAll(async () => {
  cli = await openApiCli();
  dir = mkdtempSync(join(tmpdir(), "postern-hostile-"));
  // Real responses with the hostile text appended to each string.
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { authorization = "" } = request.headers;
    const headers = { authorization, "content-type": "application/json" };
    const answer = await fetch(`${cli.url}${request.url}`, { method: "POST", headers, body: Buffer.concat(chunks) });
    const body = made(await answer.json());
    response.writeHead(answer.status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  server.listen(0, "127.0.0.1");
  url = await new Promise((resolve) =>
    server.once("listening", () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)),
  );
  const role = await cli.resources.role(["orders.read"]);
  const ratelimits = [{ name: "calls", limit: 5, duration: 3_600_000, autoApply: true }];
  const key = await cli.resources.key({
    name: "n",
    roles: [role.name],
    externalId: "who",
    meta: { a: "b" },
    ratelimits,
  });
  for (let n = 0; n < 3; n++) await cli.resources.key();
  ({ keyId, apiId } = key);
  keyFile = join(dir, "key");
  writeFileSync(keyFile, key.key);
  requestId = (await cli.t.call("keys.verifyKey", { key: key.key })).body.meta.requestId;
  await cli.t.ingest();
  await cli.t.data("ratelimit.createNamespace", { name: "email" });
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await cli.close();
  rmSync(dir, { recursive: true });
});

/** Appends the hostile text to each string that a person can choose. */
function made(value: unknown): unknown {
  if (typeof value === "string") return `${value}${HOSTILE}`;
  if (Array.isArray(value)) return value.map(made);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, of]) => [name, made(of)]));
}

const run = (args: readonly string[], columns?: number) => {
  const env = { XDG_CONFIG_HOME: dir, POSTERN_API_URL: url, POSTERN_ROOT_KEY: cli.t.workspace.rootKey };
  return runPostern(args, { env, ...(columns === undefined ? {} : { columns }) });
};

const COMMANDS = [
  { name: "key list", args: () => ["key", "list", "--api", apiId] },
  { name: "key list, of which there are more", args: () => ["key", "list", "--api", apiId, "--limit", "1"] },
  { name: "key get", args: () => ["key", "get", "--id", keyId] },
  { name: "key create", args: () => ["key", "create", "--api", apiId] },
  { name: "key reroll", args: () => ["key", "reroll", "--id", keyId] },
  { name: "key verify", args: () => ["key", "verify", "--key-file", keyFile] },
  { name: "explain", args: () => ["explain", "--key-id", keyId] },
  { name: "explain of a request", args: () => ["explain", "--request-id", requestId] },
  { name: "identity list", args: () => ["identity", "list"] },
  { name: "identity get", args: () => ["identity", "get", "--identity", "who"] },
  { name: "identity create", args: () => ["identity", "create", "--external-id", "new"] },
  { name: "role list", args: () => ["role", "list"] },
  { name: "role create", args: () => ["role", "create", "--name", "made"] },
  {
    name: "override set",
    args: () => ["override", "set", "--namespace", "email", "--identifier", "a", "--limit", "3", "--duration", "1m"],
  },
  { name: "override list", args: () => ["override", "list", "--namespace", "email"] },
  { name: "analytics", args: () => ["analytics", "--by", "identity"] },
  { name: "a refusal", args: () => ["key", "get", "--id", "key_none"] },
  { name: "input that is not valid", args: () => ["key", "create", "--api", apiId, "--prefix", "a b"] },
];

describe.each(COMMANDS)("$name", ({ args }) => {
  test("output for a hostile server contains no terminal control sequences", async () => {
    const { text, notes } = await run(args(), 80);
    const said = [text, ...notes];
    expect(said.filter((part) => COMMANDING.test(part))).toEqual([]);
    // No output line starts with text from the server.
    expect(said.flatMap((part) => part.split("\n")).filter((line) => line.startsWith("forged"))).toEqual([]);
    // The output contains text from the server.
    expect(said.join("")).toContain("owned");
  });

  test("JSON output for a hostile server has the same values without control sequences", async () => {
    const { text, notes } = await run([...args(), "--json"], 80);
    expect([text, ...notes].filter((part) => COMMANDING.test(part))).toEqual([]);
    if (text !== "") expect(JSON.stringify(JSON.parse(text))).toContain(JSON.stringify(HOSTILE).slice(1, -1));
  });
});

test("suggested command contains a hostile text as a single shell word", async () => {
  const { notes } = await run(["key", "list", "--api", apiId, "--limit", "1"], 80);
  expect(notes.join()).toMatch(/ --cursor 'key_[^']*\$\(touch owned\)' to continue$/);
});
