import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { openSystem } from "../faults/system.ts";
import { startOwnClickhouse } from "../harness/clickhouse.ts";
import { clickhouseCommand } from "../harness/parts/clickhouse.ts";
import { PROGRAM } from "../harness/process.ts";
import { waitFor } from "../harness/wait.ts";

/*
 * Follows "Usage events in ClickHouse" of docs/administration.md from an empty server to usage that is answered. The engine of the tests has one
 * user, so the addresses get that one; what the users of the document may do is tried in test/contracts/analytics/clickhouse-users.test.ts.
 */

const ROOT = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);
const section =
  /## Usage events in ClickHouse\n[\s\S]*?(?=\n## )/.exec(
    readFileSync(join(ROOT, "docs/administration.md"), "utf8"),
  )?.[0] ?? "";

test("ClickHouse guide turns an empty server into a working analytics database", async () => {
  const [clickhouse, system] = [await startOwnClickhouse(), await openSystem()];
  onTestFinished(() => clickhouse.stop());
  const createDatabase = /^CREATE DATABASE .*(?=;$)/m.exec(section)?.[0] ?? "";
  await clickhouseCommand(clickhouse.url, createDatabase);
  const env = Object.fromEntries(
    [...section.matchAll(/^export (\w+)='(.*)'$/gm)].map(([, name = "", address = ""]) => {
      const url = new URL(clickhouse.url);
      url.pathname = new URL(address).pathname;
      return [name, url.href];
    }),
  );
  expect(Object.keys(env)).toEqual(["ANALYTICS_URL", "ANALYTICS_READER_URL"]);

  const api = await system.spawnApi({ ...env, POSTERN_INGEST: "off" });
  const ingest = await system.spawnIngest(env);
  const { apiId } = await api.data("apis.createApi", { name: "payments" });
  const { key } = await api.data("keys.createKey", { apiId });
  for (let i = 0; i < 3; i++) expect((await api.data("keys.verifyKey", { key })).valid).toBe(true);

  const query = "SELECT outcome, SUM(count) AS n FROM key_verifications_per_day_v1 GROUP BY outcome";
  const answered = async () => {
    const rows = (await api.data("analytics.getVerifications", { query })) as unknown as { n: number }[];
    return rows[0]?.n === 3 && rows;
  };
  const options = { deadlineMs: 30_000, everyMs: 200 };
  expect(await waitFor("the events to be counted", answered, options)).toEqual([{ outcome: "VALID", n: 3 }]);

  const asked = [PROGRAM, "analytics", "--by", "outcome", "--json"];
  const { stdout } = await run(process.execPath, asked, {
    env: { ...process.env, POSTERN_API_URL: api.url, POSTERN_ROOT_KEY: system.rootKey },
  });
  expect(JSON.parse(stdout).usage).toMatchObject([{ outcome: "VALID", total: 3 }]);

  const metrics = async (url: string) => (await fetch(`${url}/metrics`)).text();
  const exported = await metrics(ingest.adminUrl);
  const advice = /^Watch the metrics[\s\S]*/m.exec(section)?.[0] ?? "";
  const named = [...advice.matchAll(/`(postern_\w+)/g)].map(([, name = ""]) => name);
  expect(named.length).toBeGreaterThan(5);
  for (const name of named) expect(exported, name).toContain(`# TYPE ${name} `);
}, 120_000);
