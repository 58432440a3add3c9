import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cli, openCli } from "../test/cli.ts";

let cli: Cli;
beforeAll(async () => {
  cli = await openCli();
  await cli.json("workspace create --name default");
  await cli.db.query("delete from audit_log");
  for (let day = 1; day <= 5; day++) {
    await cli.db.query(
      `insert into audit_log (id, workspace_id, time, event, description, actor, remote_ip, targets, request_id)
       select 'log_' || $1, id, $2, $3, 'Updated key', $4, '10.0.0.1', $5, 'req_1' from workspaces`,
      [
        day,
        Date.UTC(2026, 0, day),
        day % 2 === 0 ? "key.update" : "key.create",
        { type: "rootkey", id: "rk_1", name: "ci", meta: { manager: "dev/Role/shop/a" } },
        JSON.stringify([{ type: "key", id: `key_${day}` }]),
      ],
    );
  }
});
afterAll(() => cli.close());

const ids = async (args: string): Promise<string[]> =>
  (await cli.json(`audit ${args}`)).events.map(({ id }: { id: string }) => id);

test("audit lists all fields, newest first", async () => {
  const { events, hasMore } = await cli.json("audit");
  expect(hasMore).toBe(false);
  expect(events.map((row: { time: number }) => new Date(row.time).getUTCDate())).toEqual([5, 4, 3, 2, 1]);
  expect(events[0]).toEqual({
    id: "log_5",
    time: Date.UTC(2026, 0, 5),
    event: "key.create",
    actor: { type: "rootkey", id: "rk_1", name: "ci", meta: { manager: "dev/Role/shop/a" } },
    targets: [{ type: "key", id: "key_5" }],
    description: "Updated key",
    remoteIp: "10.0.0.1",
    userAgent: null,
    correlationId: null,
    requestId: "req_1",
    before: null,
    after: null,
  });
});

test("audit filters by event, target and time, alone or combined", async () => {
  expect(await ids("--event key.update")).toEqual(["log_4", "log_2"]);
  expect(await ids("--target key_3")).toEqual(["log_3"]);
  expect(await ids("--since 2026-01-04")).toEqual(["log_5", "log_4"]);
  expect(await ids("--event key.create --since 2026-01-02T00:00:01Z")).toEqual(["log_5", "log_3"]);
  expect((await cli.run("audit --event key.update --target key_3")).notes).toEqual(["no events"]);
});

test("audit prints at most --limit rows and says that there are more", async () => {
  const ran = await cli.run("audit --limit 2");
  expect(ran.out[0]).toMatch(/^TIME +EVENT +ACTOR +TARGETS +DESCRIPTION$/);
  expect(ran.out[1]).toBe("2026-01-05 00:00:00Z  key.create  ci (rk_1) for dev/Role/shop/a  key_5    Updated key");
  expect(ran.out).toHaveLength(3);
  expect(ran.notes).toEqual(["only the first 2 events are shown; increase --limit for more"]);
  expect(await cli.json("audit --limit 5")).toMatchObject({ hasMore: false });
});

test("audit reads a large log by its index, without surplus rows", async () => {
  await cli.db.query(
    `insert into audit_log (id, workspace_id, time, event, description, actor, targets)
     select 'log_many_' || i, id, i, 'key.update', '', '{}', '[]' from workspaces, generate_series(1, 20000) i`,
  );
  await cli.db.query("analyze audit_log");
  const { rows } = await cli.db.query(
    `explain (analyze, format json)
     select id from audit_log
      where workspace_id = (select id from workspaces) and time >= 0 and (null::text is null or event = null)
      order by time desc, id limit 101`,
  );
  const plan = JSON.stringify(rows[0]["QUERY PLAN"]);
  expect(plan).toContain('"Index Name":"audit_log_by_time"');
  expect(plan).not.toContain('"Node Type":"Sort"');
  await cli.db.query("delete from audit_log where id like 'log_many_%'");
});

test.each([
  { args: "--workspace nobody", code: 1, says: "there is no workspace nobody" },
  { args: "--since yesterday", code: 2, says: "for --since: must be a time" },
  { args: "--limit 0", code: 2, says: "for --limit: must be an integer from 1 to 10000" },
] as const)("audit rejects $args", async ({ args, code, says }) => {
  expect(await cli.failure(`audit ${args}`, code)).toContain(says);
});

test("audit reports an unreachable database in one line, without its password", async () => {
  const DATABASE_URL = "postgres://postgres:hunter22@127.0.0.1:1/postern";
  const { code, notes } = await cli.run("audit", { env: { DATABASE_URL } });
  expect(code).toBe(1);
  expect(notes).toEqual([
    "postern audit: the database is unavailable; check DATABASE_URL and --data-dir: no connection to 127.0.0.1:1: no program listens on this port; start the server, or correct its address (ECONNREFUSED)",
  ]);
});

test("audit without a database and without a running dev is a usage error", async () => {
  const { code, notes } = await cli.run("audit --data-dir /nowhere", { env: { DATABASE_URL: "" } });
  expect(code).toBe(2);
  expect(notes.join()).toContain("no `postern dev` runs on /nowhere; start one, or set DATABASE_URL");
});
