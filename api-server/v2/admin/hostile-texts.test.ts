import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";
import { everyProcedure, everyReference, sampleCallsOf } from "../../test/every-procedure.ts";
import { makeResources } from "../../test/resources.ts";

/* Every text of every call that administrators make, and every filter, cursor and search beside them, is replaced by what breaks naive code. */

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

const HOSTILE: readonly string[] = [
  "\0",
  "a\0b",
  "\ud800",
  "%",
  "_%\\",
  "\\",
  "'; drop table keys; --",
  "{}",
  "$1",
  "İ".repeat(85),
  "😀".repeat(60),
  "x".repeat(255),
  "x".repeat(10_000),
  "9".repeat(300),
  "99999999999999999999_log_1",
  "1e309.key_1",
];
/** Of lists; a procedure that does not take one refuses it. */
const BESIDE = [
  "search",
  "cursor",
  "name",
  "start",
  "externalId",
  "role",
  "permission",
  "targetId",
  "actorId",
  "event",
];

/** The same body for each of its texts, with that text replaced. */
function* replaced(body: unknown, by: string): Generator<unknown> {
  if (typeof body === "string") yield by;
  else if (Array.isArray(body))
    for (const [at, one] of body.entries()) for (const other of replaced(one, by)) yield body.with(at, other);
  else if (typeof body === "object" && body !== null)
    for (const [name, one] of Object.entries(body))
      for (const other of replaced(one, by)) yield { ...body, [name]: other };
}

const paths = everyProcedure.filter(({ path }) => path.startsWith("admin.")).map(({ path }) => path);

test.each(paths)("%s responds to hostile strings without an internal error, and works afterwards", async (path) => {
  const resources = makeResources(t.deps.db, { workspaceId: t.workspace.id, ask: (at, body) => t.data(at, body) });
  const known = new Set((everyReference().get(path) ?? []).map(({ field }) => field));
  for (const makeCall of Object.values(sampleCallsOf(path))) {
    const { body } = await makeCall(resources);
    for (const by of HOSTILE) {
      const beside = BESIDE.filter((name) => known.has(name) || /list|search/.test(path));
      for (const tried of [...replaced(body, by), ...beside.map((name) => ({ ...(body as object), [name]: by }))]) {
        const reply = await t.call(path, tried);
        expect(reply.status, `${JSON.stringify(tried).slice(0, 300)}: ${JSON.stringify(reply.body)}`).toBeLessThan(500);
      }
    }
  }
  const { body } = await sampleCallsOf(path).always(resources);
  expect((await t.call(path, body)).status).toBe(200);
});
