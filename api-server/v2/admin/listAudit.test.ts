import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

/* 30,000 rows of this workspace and 30,000 of another, which has the same times, events and actors. */

const ROWS = 30_000;
const T0 = Date.UTC(2026, 0, 1);

let t: TestApp;
let otherId: string;
beforeAll(async () => {
  t = await buildTestApp();
  otherId = (await t.makeWorkspace()).id;
  // Ids sort otherwise than times do; every three rows share a millisecond.
  await t.deps.db.query(
    `insert into audit_log (id, workspace_id, time, event, description, actor, targets, request_id)
     select 'log_' || md5(w.id || i), w.id, $3::bigint + i / 3, case when i % 1000 = 7 then 'api.update' else 'key.update' end, 'Updated ' || i,
            jsonb_build_object('type', 'rootkey', 'id', 'rk_' || i % 500, 'name', 'root ' || i % 500),
            jsonb_build_array(jsonb_build_object('type', 'key', 'id', 'key_' || i % 3000),
                              jsonb_build_object('type', 'api', 'id', 'api_one')), 'req_' || i / 2
       from unnest($1::text[]) as w (id), generate_series(1, $2::int) as i`,
    [[t.workspace.id, otherId], ROWS, T0],
  );
  await t.deps.db.query("analyze audit_log");
});
afterAll(() => t.close());

interface Row {
  readonly id: string;
  readonly time: number;
  readonly event: string;
  readonly description: string;
}

async function pages(body: object): Promise<Row[]> {
  const rows: Row[] = [];
  let cursor: string | undefined;
  do {
    const reply = await t.call("admin.listAudit", { ...body, cursor });
    expect(reply.status, JSON.stringify(reply.body)).toBe(200);
    rows.push(...reply.body.data);
    cursor = reply.body.pagination.cursor;
  } while (cursor !== undefined);
  return rows;
}

test("admin.listAudit returns every entry exactly once across pages, newest first, even if timestamps are equal", async () => {
  const since = T0 + (ROWS - 500) / 3;
  const rows = await pages({ since: Math.ceil(since), limit: 7 });
  expect(rows.length).toBeGreaterThan(450);
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
  const times = rows.map(({ time }) => time);
  expect(times).toEqual([...times].sort((a, b) => b - a));
});

test("admin.listAudit continues at the next entry if the first entry of a page was deleted", async () => {
  const body = { requestId: "req_40", limit: 1 };
  const first = await t.call("admin.listAudit", body);
  const { cursor } = first.body.pagination;
  await t.deps.db.query("delete from audit_log where id = $1", [cursor.slice(cursor.indexOf("_") + 1)]);
  const rest = await t.call("admin.listAudit", { ...body, cursor });
  expect(rest.body).toMatchObject({ data: [], pagination: { hasMore: false } });
});

describe.each([
  { filter: { event: "api.update" }, count: 30, index: "audit_log_by_event" },
  { filter: { actorId: "rk_77" }, count: 60, index: "audit_log_by_actor" },
  { filter: { targetId: "key_77" }, count: 10, index: "audit_log_by_target" },
  { filter: { requestId: "req_77" }, count: 2, index: "audit_log_by_request" },
  { filter: { since: T0 + 9_999, until: T0 + 9_999 }, count: 3, index: "audit_log_by_time" },
  { filter: { actorId: "rk_77", targetId: "key_77" }, count: 10, index: "audit_log_by_" },
])("the filter $filter", ({ filter, count, index }) => {
  test("admin.listAudit filter returns only entries of the workspace", async () => {
    expect(await pages({ ...filter, limit: 100 })).toHaveLength(count);
  });

  test("admin.listAudit filter uses an index", async () => {
    const plans = await plansOf(() => t.call("admin.listAudit", { ...filter, limit: 100 }));
    expect(plans).toContain(index);
    expect(plans).not.toContain("Seq Scan");
  });
});

test("admin.listAudit reads only one page of entries, even for a target with very many", async () => {
  const plans = await plansOf(() => t.call("admin.listAudit", { targetId: "api_one", limit: 100 }));
  expect(plans).toContain("audit_log_by_time");
  expect(plans).not.toContain("Sort");
});

test("admin.listAudit with an invalid cursor starts at the newest entry", async () => {
  const [newest] = await t.data("admin.listAudit", { limit: 1 });
  for (const cursor of ["key_1", "_", "99999999999999999999_log_1", "' or 1=1", "é_1"]) {
    expect((await t.data("admin.listAudit", { limit: 1, cursor }))[0]).toEqual(newest);
  }
});

test("admin.listAudit shows the actor and the request of an API change", async () => {
  const { apiId } = await t.data("apis.createApi", { name: "shown" });
  const [row] = await t.data("admin.listAudit", { targetId: apiId });
  expect(row).toMatchObject({
    event: "api.create",
    actor: { type: "rootkey", name: "root key" },
    targets: [{ type: "api", id: apiId, name: "shown" }],
  });
  expect(row.requestId).toMatch(/^req_/);
});

/** The plans of the statements that the log is read with while `work` runs. */
async function plansOf(work: () => Promise<unknown>): Promise<string> {
  const { db } = t.deps;
  const texts: Array<{ text: string; values: unknown[] }> = [];
  const connect = db.connect.bind(db);
  db.connect = (async () => {
    const client = await connect();
    const query = client.query.bind(client);
    client.query = ((config: { text?: string; values?: unknown[] }, ...rest: never[]) => {
      if (config.text?.includes("from audit_log l") === true)
        texts.push({ text: config.text, values: config.values ?? [] });
      return (query as (...all: unknown[]) => unknown)(config, ...rest);
    }) as never;
    return client;
  }) as never;
  try {
    await work();
  } finally {
    db.connect = connect as never;
  }
  expect(texts).toHaveLength(1);
  const plans = await Promise.all(
    texts.map(({ text, values }) => db.query(`explain (format json) ${text}`, values).then(({ rows }) => rows[0])),
  );
  return JSON.stringify(plans);
}
