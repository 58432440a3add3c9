import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { createClient } from "@clickhouse/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EventLines } from "../../../edge/events/schema.ts";
import { KINDS, type Kind, openServed, type Served } from "../../analytics/served.ts";
import { waitFor } from "../../harness/wait.ts";
import { anEvent } from "../edge/an-event.ts";

/* A query whose client disconnects is canceled: the database aborts it, its slot is released, and its runtime is charged. */

const NOW_MS = Date.UTC(2042, 4, 31, 12);
const RAW = "key_verifications_v1";
/** Runs far longer than any limit. */
const ENDLESS = `SELECT count() AS endless FROM ${RAW} AS t0 ${Array.from({ length: 9 }, (_, at) => `CROSS JOIN ${RAW} AS t${at + 1}`).join(" ")}`;
/** Runs for about a second. */
const SLOW = `SELECT count() AS n FROM ${RAW} AS t0 CROSS JOIN ${RAW} AS t1 CROSS JOIN ${RAW} AS t2 CROSS JOIN (SELECT request_id FROM ${RAW} LIMIT 5) AS t3 WHERE concat(t0.request_id, t3.request_id, t1.key_id) != t2.request_id`;
const QUICK = `SELECT count() AS n FROM ${RAW}`;
/** More queries than a workspace may run concurrently on either database, so that some wait. */
const QUERIES = 6;

let served: Served;
let rootKey: string;

beforeAll(async () => {
  served = await openServed({ nowMs: NOW_MS });
  rootKey = await served.addWorkspace("ws_1", { timeout_ms: 30_000, run_ms_per_hour: 1_000_000_000 });
  await served.t.analytics.maintain(NOW_MS);
  await store("ws_1");
});
afterAll(() => served?.close());

/** Stores 60 events in both databases. */
async function store(workspaceId: string): Promise<void> {
  const events = Array.from({ length: 60 }, (_, at) =>
    anEvent({ workspaceId, timeMs: NOW_MS - at, requestId: `req_${at}` }),
  );
  const batch = new EventLines(workspaceId, events.map((event) => JSON.stringify(event)).join("\n"));
  for (const one of [served.t.analytics, served.clickhouse.store]) {
    expect(await one.ingest(batch, NOW_MS)).toMatchObject({ stored: 60 });
  }
}

/** Returns the number of callers' queries that run in the database. */
const RUNNING: Readonly<Record<Kind, () => Promise<number>>> = {
  postgres: async () => {
    const { rows } = await served.db.query<{ n: number }>(
      `select count(*) as n from pg_stat_activity as a
        where a.datname = current_database() and a.application_name = 'postern-analytics' and a.state = 'active'`,
    );
    return Number(rows[0]?.n);
  },
  clickhouse: async () => {
    const client = createClient({ url: served.clickhouse.url });
    const query =
      "select count() from system.processes as p where p.query ilike '%cross join%' and p.query not like '%system.processes%'";
    const response = await client.query({ query, format: "JSONCompactEachRow" });
    const [[n] = []] = await response.json<[string]>();
    await client.close();
    return Number(n);
  },
};

async function askAndLeave(kind: Kind, rootKey: string, queries: number): Promise<void> {
  const callers = Array.from({ length: queries }, () => new AbortController());
  const asked = callers.map(({ signal }) =>
    served.ask(kind, { rootKey, query: ENDLESS, signal }).then(
      ({ status }) => status,
      (error: Error) => error.name,
    ),
  );
  await waitFor("some to run", async () => (await RUNNING[kind]()) >= Math.min(2, queries), { deadlineMs: 20_000 });
  for (const caller of callers) caller.abort();
  expect(await Promise.all(asked)).toEqual(callers.map(() => "AbortError"));
}

describe.each(KINDS)("on %s", (kind) => {
  test("running and queued queries of disconnected clients are canceled, which frees their slots", {
    timeout: 60_000,
  }, async () => {
    await askAndLeave(kind, rootKey, QUERIES);
    const leftAt = performance.now();
    await waitFor("all to end", async () => (await RUNNING[kind]()) === 0, { deadlineMs: 10_000 });
    // Far below their limit of 30 s.
    expect(performance.now() - leftAt).toBeLessThan(10_000);
    expect(await served.ask(kind, { rootKey, query: QUICK })).toEqual({ status: 200, rowsJson: '[{"n":60}]' });
  });

  test("canceled analytics query is charged for its runtime", { timeout: 60_000 }, async () => {
    const hasty = await served.addWorkspace(`ws_2_${kind}`, { run_ms_per_hour: 5 });
    await store(`ws_2_${kind}`);
    await askAndLeave(kind, hasty, 1);
    const refused = async () => (await served.ask(kind, { rootKey: hasty, query: QUICK })).status === 429;
    await waitFor("the quota to be used up", refused);
  });

  test("client that has closed only its sending side still gets its analytics response", {
    timeout: 60_000,
  }, async () => {
    const body = JSON.stringify({ query: SLOW });
    const head = ["POST /v2/analytics.getVerifications HTTP/1.1", "Host: a", "Content-Type: application/json"];
    head.push(`Authorization: Bearer ${rootKey}`, `Content-Length: ${Buffer.byteLength(body)}`, "Connection: close");
    const socket = connect({ host: "127.0.0.1", port: served.ports[kind], allowHalfOpen: true });
    socket.end([...head, "", body].join("\r\n"));
    const response = await text(socket);
    expect(response).toMatch(/^(HTTP\/1\.1 102 Processing\r\n\r\n)*HTTP\/1\.1 200 OK\r\n/);
    expect(response).toContain(`{"data":[{"n":${60 ** 3 * 5}}]`);
  });
});
