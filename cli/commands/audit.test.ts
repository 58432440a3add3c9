import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiCli, openApiCli, type RunOptions } from "../test/api-cli.ts";

let cli: ApiCli;
beforeAll(async () => {
  cli = await openApiCli();
  await cli.t.deps.db.query("delete from audit_log");
  for (let day = 1; day <= 5; day++) {
    await cli.t.deps.db.query(
      `insert into audit_log (id, workspace_id, time, event, description, actor, remote_ip, targets, request_id)
       values ('log_' || $1, $6, $2, $3, 'Updated key', $4, '10.0.0.1', $5, 'req_1')`,
      [
        day,
        Date.UTC(2026, 0, day),
        day % 2 === 0 ? "key.update" : "key.create",
        { type: "rootkey", id: "rk_1", name: "ci", meta: { manager: "dev/Role/shop/a" } },
        JSON.stringify([{ type: "key", id: `key_${day}` }]),
        cli.t.workspace.id,
      ],
    );
  }
});
afterAll(() => cli.close());

const run = (line: string, options?: RunOptions) => cli.run(line.split(" "), options);
const json = (line: string) => cli.json(line.split(" "));
const ids = async (args: string): Promise<string[]> =>
  (await json(`audit ${args}`)).events.map(({ id }: { id: string }) => id);

test("audit command lists changes with all fields, newest first", async () => {
  const { events, hasMore } = await json("audit");
  expect(hasMore).toBe(false);
  expect(events.map((row: { time: number }) => new Date(row.time).getUTCDate())).toEqual([5, 4, 3, 2, 1]);
  expect(events[0]).toEqual({
    id: "log_5",
    time: Date.UTC(2026, 0, 5),
    event: "key.create",
    actor: { type: "rootkey", id: "rk_1", name: "ci", manager: "dev/Role/shop/a" },
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

test("audit command filters by event, target and time, alone or combined", async () => {
  expect(await ids("--event key.update")).toEqual(["log_4", "log_2"]);
  expect(await ids("--target key_3")).toEqual(["log_3"]);
  expect(await ids("--since 2026-01-04")).toEqual(["log_5", "log_4"]);
  expect(await ids("--event key.create --since 2026-01-02T00:00:01Z")).toEqual(["log_5", "log_3"]);
  expect((await run("audit --event key.update --target key_3")).notes).toEqual(["no events"]);
});

test("audit command prints at most --limit rows, says that there are more, and continues at the cursor", async () => {
  const ran = await run("audit --limit 2");
  expect(ran.out[0]).toMatch(/^TIME +EVENT +ACTOR +TARGETS +DESCRIPTION$/);
  expect(ran.out[1]).toBe("2026-01-05 00:00:00Z  key.create  ci (rk_1) for dev/Role/shop/a  key_5    Updated key");
  expect(ran.out).toHaveLength(3);
  expect(ran.notes.join()).toContain("only 2 events are shown; use --all for all, or --cursor");
  const { cursor } = await json("audit --limit 2");
  expect(await ids(`--all --cursor ${cursor}`)).toEqual(["log_3", "log_2", "log_1"]);
  expect(await json("audit --limit 5")).toMatchObject({ hasMore: false, cursor: null });
});

test("audit command lists only changes in the root key's workspace, and requires a permission", async () => {
  const { rootKey } = await cli.t.makeWorkspace();
  expect((await run("audit", cli.as(rootKey))).notes).toEqual(["no events"]);
  const poor = await run("audit", cli.as(await cli.t.rootKey(["workspace.*.read_workspace"])));
  expect(poor).toMatchObject({ code: 1, text: "" });
  expect(poor.notes.join()).toContain("postern rootkey create --permissions 'workspace.*.read_audit'");
});

test.each([
  { args: "--since yesterday", says: "for --since: must be a time" },
  { args: "--limit 0", says: "for --limit: must be an integer from 1 to 1000000" },
])("audit command rejects the arguments $args", async ({ args, says }) => {
  const ran = await run(`audit ${args}`);
  expect(ran).toMatchObject({ code: 2, text: "" });
  expect(ran.notes.join()).toContain(says);
});
