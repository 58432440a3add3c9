import { createHash } from "node:crypto";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTestApp, type Reply, type TestApp } from "./app.ts";
import { everyProcedure, sampleCallsOf } from "./every-procedure.ts";
import { browserWith, cookieOf, followLink, makeLink, OWN_PAGE, post } from "./people.ts";
import { makeResources, type Resources } from "./resources.ts";

/*
 * Calls every procedure in every circumstance, including failures, with the lowest log level. Secrets then appear only in the responses
 * that return them: not in logs, errors, the audit log or events.
 */

let t: TestApp;
const logged: string[] = [];
/** All secrets returned or sent, with their hashes. */
const secrets = new Set<string>();
const events: string[] = [];
const errors: string[] = [];

const keep = (secret: string): string => {
  secrets.add(secret);
  secrets.add(createHash("sha256").update(secret).digest("base64"));
  secrets.add(createHash("sha256").update(secret).digest("hex"));
  return secret;
};

/** Collects the secrets in a response. */
function collect(one: unknown): void {
  if (typeof one !== "object" || one === null) return;
  for (const [name, value] of Object.entries(one)) {
    if (["key", "rootKey", "plaintext", "token"].includes(name) && typeof value === "string") keep(value);
    collect(value);
  }
}

const seen = (reply: Reply): Reply => {
  if (reply.body?.error === undefined) collect(reply.body);
  else errors.push(JSON.stringify(reply.body));
  return reply;
};

beforeAll(async () => {
  t = await buildTestApp({
    deps: () => ({ log: pino({ level: "trace" }, { write: (line: string) => void logged.push(line) }) }),
  });
  keep(t.workspace.rootKey);
  const { addLine } = t.edge.sink;
  t.edge.sink.addLine = (workspaceId, line) => {
    events.push(line);
    return addLine.call(t.edge.sink, workspaceId, line);
  };
});
afterAll(() => t.close());

const resources = (): Resources =>
  makeResources(t.deps.db, {
    workspaceId: t.workspace.id,
    ask: async (path, body) => {
      const reply = await t.call(path, body);
      if (reply.status !== 200) throw new Error(`${path}: ${JSON.stringify(reply.body)}`);
      return seen(reply).body.data;
    },
  });

test("log check covers every procedure, including calls that fail", async () => {
  for (const { path } of everyProcedure) {
    for (const makeCall of Object.values(sampleCallsOf(path))) {
      const { body } = await makeCall(resources());
      collect(body);
      seen(await t.call(path, body));
    }
    const wrong = keep(`postern_wrong${Math.random()}${"x".repeat(20)}`);
    seen(await t.call(path, { key: wrong, keyHash: wrong, rootKey: wrong, token: wrong }));
    seen(await t.call(path, {}, { rootKey: wrong }));
    seen(await t.call(path, {}, { rootKey: null, headers: { authorization: `Basic ${wrong}` } }));
    if (!path.startsWith("v1/")) seen(await t.call(path, `{"key":"${wrong}",`));
  }
}, 300_000);

test("log check covers sign-ins and sign-outs, including attempts that fail", async () => {
  const link = keep(await makeLink(t));
  const reply = seen(await followLink(t, link));
  const token = keep(cookieOf(reply) ?? "");
  seen(await followLink(t, link));
  seen(await post(t, "/dashboard/auth/link", `{"token":"${link}",`, OWN_PAGE));
  seen(await followLink(t, link, { ...OWN_PAGE, origin: "https://evil.test" }));
  const person = browserWith(t, token);
  seen(await person.call("admin.createRootKey", { name: "by a person", permissions: ["api.*.read_api"] }));
  seen(await person.call("apis.getApi", { apiId: "api_missing0" }, { origin: "https://evil.test" }));
  seen(await person.signOut(true));
  seen(await person.call("apis.getApi", { apiId: "api_missing0" }));
});

test("unexpected errors are logged without request data", async () => {
  const { key, keyId, apiId } = await resources().key();
  keep(key);
  const link = keep(await makeLink(t));
  const { rows } = await t.deps.db.query("select hash from keys where id = $1", [keyId]);
  const rename = (from: string, to: string) => t.deps.db.query(`alter table ${from} rename to ${to}`);
  // Postgres lists every value of a row that violates a constraint in the error detail.
  const tables = ["keys", "root_keys", "sessions", "sign_in_links"];
  for (const table of tables) {
    await t.deps.db.query(`alter table ${table} add constraint never check (false) not valid`);
  }
  seen(await t.call("keys.createKey", { apiId }));
  seen(await t.call("keys.rerollKey", { keyId, expiration: 0 }));
  seen(await t.call("admin.createRootKey", { name: "never", permissions: ["api.*.read_api"] }));
  seen(await followLink(t, link));
  for (const table of tables) await t.deps.db.query(`alter table ${table} drop constraint never`);
  await rename("audit_log", "audit_log_away");
  seen(await t.call("keys.createKey", { apiId }));
  seen(await followLink(t, link));
  await rename("audit_log_away", "audit_log");
  t.deps.projection.forgetAll();
  await rename("keys", "keys_away");
  seen(await t.call("keys.verifyKey", { key }));
  seen(await t.call("admin.searchKeys", { hash: rows[0].hash }));
  await rename("keys_away", "keys");
  expect(logged.join("\n")).toContain("never");
});

test("secrets appear only in the allowed outputs", async () => {
  await t.ingest();
  const audit = await t.deps.db.query("select to_jsonb(a)::text as row from audit_log a");
  const places: Readonly<Record<string, readonly string[]>> = {
    "the log": [...logged, ...t.logs],
    "an error": errors,
    "the audit log": audit.rows.map(({ row }) => row),
    "an event": events,
  };
  expect(secrets.size).toBeGreaterThan(500);
  for (const [place, lines] of Object.entries(places)) {
    expect(lines.length, place).toBeGreaterThan(0);
    const text = lines.join("\n");
    const found = [...secrets].filter(
      (secret) => text.includes(secret) || text.includes(JSON.stringify(secret).slice(1, -1)),
    );
    expect(
      found.map((secret) => text.slice(Math.max(0, text.indexOf(secret) - 200), text.indexOf(secret) + 60)),
      place,
    ).toEqual([]);
  }
});
