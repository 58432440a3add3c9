import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Cli, openCli } from "../test/cli.ts";

let cli: Cli;
beforeAll(async () => {
  cli = await openCli();
});
afterAll(() => cli.close());

const eventsOf = async (workspace: string): Promise<string[]> =>
  (await cli.audit({ workspace })).map(({ description }) => description);

describe("workspace create", () => {
  test("workspace create adds a workspace to the list and records its creator", async () => {
    const made = await cli.json("workspace create --name acme");
    expect(made).toEqual({
      workspaceId: expect.stringMatching(/^ws_\w{16}$/),
      name: "acme",
      enabled: true,
      quotaPerMinute: null,
      createdAt: expect.any(Number),
    });
    const { workspaces, hasMore } = await cli.json("workspace list");
    expect({ workspaces, hasMore }).toEqual({ workspaces: [made], hasMore: false });
    const events = await cli.audit({ workspace: "acme" });
    expect(events).toMatchObject([
      {
        event: "workspace.create",
        actor: { type: "cli", id: "cli", name: expect.stringContaining("@") },
        targets: [{ type: "workspace", id: made.workspaceId, name: "acme" }],
      },
    ]);
  });

  test("workspace create accepts a quota", async () => {
    expect(await cli.json("workspace create --name metered --per-minute 600")).toMatchObject({ quotaPerMinute: 600 });
  });

  test("workspace create prints the workspace", async () => {
    const { code, out } = await cli.run("workspace create --name shown");
    expect(code).toBe(0);
    expect(out).toEqual([
      expect.stringMatching(/^id {7}ws_/),
      "name     shown",
      "state    enabled",
      "quota    none",
      expect.stringMatching(/^created {2}\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ$/),
    ]);
  });

  test("workspace create rejects an existing name", async () => {
    await cli.run("workspace create --name twice");
    expect(await cli.failure("workspace create --name twice", 1)).toBe(
      "postern workspace create: workspace twice already exists; set another --name",
    );
    expect(await eventsOf("twice")).toHaveLength(1);
  });

  test.each(["ws_1", "-x", "x-", "a/b", "ä", "x".repeat(64)])("workspace create rejects the name %s", async (name) => {
    expect(await cli.failure(`workspace create --name=${name}`, 2)).toContain("--name: a name has 1 to 63 letters");
  });

  test("workspace create requires a name", async () => {
    expect(await cli.failure("workspace create", 2)).toContain("--name is required");
  });
});

describe("workspace list", () => {
  test("workspace list is sorted by name, and says that there are more than --limit", async () => {
    const { workspaces, hasMore } = await cli.json("workspace list --limit 1");
    expect({ names: workspaces.map((row: { name: string }) => row.name), hasMore }).toEqual({
      names: ["acme"],
      hasMore: true,
    });
    const { out, notes } = await cli.run("workspace list --limit 1");
    expect(out).toHaveLength(2);
    expect(notes).toEqual(["only the first 1 workspaces are shown; increase --limit for more"]);
  });
});

describe("workspace disable, enable and update --per-minute", () => {
  test("workspace update accepts an id or name, and a repeated update has no effect", async () => {
    const { workspaceId } = await cli.json("workspace create --name changing");
    const state = async () => {
      const { rows } = await cli.db.query("select enabled, quota_per_minute from workspaces where id = $1", [
        workspaceId,
      ]);
      return [rows[0]?.enabled, rows[0]?.quota_per_minute];
    };
    expect(await cli.json("workspace disable --workspace changing")).toMatchObject({ workspaceId, enabled: false });
    expect(await state()).toEqual([false, null]);
    const again = await cli.run(`workspace disable --workspace ${workspaceId}`);
    expect(again.out[0]).toContain(`workspace changing (${workspaceId}) is disabled`);
    await cli.json("workspace update --workspace changing --per-minute 0");
    expect(await state()).toEqual([false, 0]);
    const enabled = await cli.run("workspace enable --workspace changing");
    expect(enabled).toMatchObject({ code: 0, out: [`workspace changing (${workspaceId}) is enabled`] });
    const unmetered = await cli.run("workspace update --workspace changing --per-minute none");
    expect(unmetered.out).toContain("quota                   none");
    expect(await state()).toEqual([true, null]);
    await cli.json("workspace enable --workspace changing");
    expect(await eventsOf("changing")).toEqual(
      ["quota none", "enabled", "quota 0", "disabled"]
        .map((what) => `Updated workspace ${workspaceId}: ${what}`)
        .concat(`Created workspace ${workspaceId}`),
    );
  });

  test.each(["-1", "1.5", "many", "1000000001"])("workspace quota of %s is rejected", async (quota) => {
    expect(await cli.failure(`workspace update --workspace acme --per-minute=${quota}`, 2)).toContain(
      "for --per-minute: must be an integer from 0 to 1000000000, or none",
    );
  });

  test.each(["disable", "enable", "update --per-minute 1"])(
    "workspace %s requires an existing workspace",
    async (verb) => {
      expect(await cli.failure(`workspace ${verb}`, 2)).toContain("--workspace is required");
      expect(await cli.failure(`workspace ${verb} --workspace nobody`, 1)).toContain(
        "there is no workspace nobody; `postern workspace list` lists them",
      );
    },
  );
});

describe("workspace update", () => {
  const DEFAULTS = {
    analytics: true,
    queryRows: 10_000,
    querySeconds: 10,
    queryMemoryMb: 1000,
    maxResponseMib: 4,
    queriesPerHour: 1000,
    querySecondsPerHour: 1800,
    verificationsDays: 30,
    ratelimitsDays: 30,
    ratelimitsMinuteDays: 7,
    ratelimitsHourDays: 30,
    ratelimitsDayDays: 100,
    ratelimitsMonthDays: 1095,
  };

  test("workspace update prints the active settings, and has no effect when it repeats a change", async () => {
    const { workspaceId } = await cli.json("workspace create --name measured");
    const named = { workspaceId, name: "measured", quotaPerMinute: null };
    expect(await cli.json("workspace update --workspace measured")).toEqual({ ...named, ...DEFAULTS });
    const change = "--analytics off --query-rows 5 --query-memory-mb 2000 --queries-per-hour 0 --verifications-days 90";
    const changed = {
      ...named,
      ...DEFAULTS,
      analytics: false,
      queryRows: 5,
      queryMemoryMb: 2000,
      queriesPerHour: 0,
      verificationsDays: 90,
    };
    expect(await cli.json(`workspace update --workspace measured ${change}`)).toEqual(changed);
    expect(await cli.json(`workspace update --workspace ${workspaceId} ${change}`)).toEqual(changed);
    const back = "--analytics on --query-rows default --query-memory-mb default --queries-per-hour default";
    expect(await cli.json(`workspace update --workspace measured ${back}`)).toEqual({
      ...named,
      ...DEFAULTS,
      verificationsDays: 90,
    });
    expect(await eventsOf("measured")).toEqual([
      `Updated workspace ${workspaceId}: analytics enabled true, analytics rows_max default, analytics memory_bytes_max default, analytics queries_per_hour default`,
      `Updated workspace ${workspaceId}: analytics enabled false, analytics rows_max 5, analytics memory_bytes_max 2000000000, analytics queries_per_hour 0, analytics verifications_days 90`,
      `Created workspace ${workspaceId}`,
    ]);
  });

  test("workspace settings are printed on one line each", async () => {
    const { out } = await cli.run("workspace update --workspace acme --ratelimits-day-days 10");
    expect(out).toContain("analytics               on");
    expect(out).toContain("ratelimits-day-days     10");
  });

  test.each([
    ["query-rows", "0", "1 to 100000"],
    ["query-rows", "100001", "1 to 100000"],
    ["query-seconds", "31", "1 to 30"],
    ["query-seconds", "0.5", "1 to 30"],
    ["query-memory-mb", "15", "16 to 64000"],
    ["max-response-mib", "65", "1 to 64"],
    ["queries-per-hour", "-1", "0 to 1000000000"],
    ["query-seconds-per-hour", "many", "0 to 1000000000"],
    ["verifications-days", "0", "1 to 3650"],
    ["ratelimits-month-days", "3651", "1 to 3650"],
  ])("workspace setting --%s %s is rejected", async (option, text, range) => {
    const [from, to] = range.split(" to ");
    expect(await cli.failure(`workspace update --workspace acme --${option}=${text}`, 2)).toContain(
      `invalid value "${text}" for --${option}: must be an integer from ${from} to ${to}, or default`,
    );
  });

  test("workspace settings require an existing workspace", async () => {
    expect(await cli.failure("workspace update", 2)).toContain("--workspace is required");
    expect(await cli.failure("workspace update --workspace nobody", 1)).toContain("there is no workspace nobody");
    expect(await cli.failure("workspace update --workspace acme --analytics maybe", 2)).toContain("must be on or off");
  });
});

test("workspace list reports an unreachable database in one line, without its password", async () => {
  const DATABASE_URL = "postgres://postgres:hunter22@127.0.0.1:1/postern";
  const { code, notes } = await cli.run("workspace list", { env: { DATABASE_URL } });
  expect(code).toBe(1);
  expect(notes).toEqual([
    "postern workspace list: the database is unavailable; check DATABASE_URL and --data-dir: no connection to 127.0.0.1:1: no program listens on this port; start the server, or correct its address (ECONNREFUSED)",
  ]);
});

test("workspace list without a database and without a running dev is a usage error", async () => {
  const { code, notes } = await cli.run("workspace list --data-dir /nowhere", { env: { DATABASE_URL: "" } });
  expect(code).toBe(2);
  expect(notes.join()).toContain("no `postern dev` runs on /nowhere; start one, or set DATABASE_URL");
});
