import { execFile, fork } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { test } from "vitest";
import { buildTestApp } from "./app.ts";

const run = promisify(execFile);
test("bench", async () => {
  const t = await buildTestApp();
  const { apiId } = await t.data("apis.createApi", { name: "payments" });
  const { key } = await t.data("keys.createKey", { apiId, name: "n" });
  const child = fork(new URL("./zzchild.ts", import.meta.url).pathname, [(t.deps.db as any).options.connectionString], {
    execArgv: [],
    execPath: "/work/main/node_modules/.bin/node",
  });
  const [address] = await once(child, "message");
  const cpu = async () => {
    child.send("cpu");
    const [c] = await once(child, "message");
    return (c as any).user + (c as any).system;
  };
  const go = async (args: string[], n = 20000) => {
    const before = await cpu();
    const { stdout } = await run("/work/main/node_modules/.bin/node", [
      "node_modules/.bin/autocannon",
      "-j",
      "-c",
      "16",
      "-a",
      String(n),
      ...args,
    ]);
    const d = (await cpu()) - before;
    const r = JSON.parse(stdout);
    return { us: d / n, ok: r["2xx"], rps: r.requests.average };
  };
  const verify = [
    "-m",
    "POST",
    "-H",
    "content-type=application/json",
    "-H",
    `authorization=Bearer ${t.workspace.rootKey}`,
    "-b",
    JSON.stringify({ key }),
    `${address}/v2/keys.verifyKey`,
  ];
  const live = [`${address}/v2/liveness`];
  const out: string[] = [];
  await go(live);
  await go(verify);
  for (let i = 0; i < 5; i++) {
    const a = await go(live),
      b = await go(verify);
    out.push(
      `live ${a.us.toFixed(1)} verify ${b.us.toFixed(1)} ratio ${(b.us / a.us).toFixed(2)} ${a.ok} ${b.ok} ${a.rps} ${b.rps}`,
    );
  }
  child.send("prof");
  await go(process.env.PROF === "live" ? live : verify, 60000);
  child.send("x");
  await once(child, "message");
  console.log(out.join("\n"));
  child.kill();
  await t.close();
}, 120000);
