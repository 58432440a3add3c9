import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { blocksOf, stepsOf } from "../docs/page.ts";
import { findHelm } from "../harness/parts/helm.ts";
import { findKubectl } from "../harness/parts/kubernetes.ts";
import { freePort } from "../harness/ports.ts";
import { waitFor } from "../harness/wait.ts";
import { type Cluster, conditionOf, type KubeObject, openCluster } from "./cluster.ts";
import { type Inside, insideOf } from "./inside.ts";
import { imageOf, install, ourCrds, type Place, present, RELEASE } from "./installation.ts";
import { guardedApp, pod, programs } from "./sample-app.ts";
import { readSettings } from "./settings.ts";

/*
 * The pages of platform engineers, walked in a cluster as they are written: what a page shows is applied, its commands are run by a shell, and requests see
 * what it promises. The names of namespaces are those of the pages, so they must not be there before. Each test goes on where the one before it ended.
 */

const ROOT = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);
const settings = readSettings(process.env);
const image = imageOf(settings, "sidecar", settings.tag);
const NAMESPACES = ["postern", "shop", "billing", "platform"];
const ORDERS = { kind: "apikeypolicies", name: "orders", namespace: "shop" };

let cluster: Cluster;
let place: Place;
let ask: Inside["ask"];
let folder: string;
let env: NodeJS.ProcessEnv;
/** Ports of the pages, which others on this machine may have, and those that stand for them. */
let ports: ReadonlyArray<readonly [string, string]>;

beforeAll(async () => {
  cluster = await openCluster(settings);
  const there = (await cluster.kubectl(["get", "namespaces", "-o", "name"])).split("\n").map((name) => name.slice(10));
  const taken = NAMESPACES.filter((name) => there.includes(name));
  if (taken.length > 0) throw new Error(`the cluster has namespaces of the pages: ${taken.join(", ")}`);
  place = { cluster, settings, namespace: "postern" };
  ({ ask } = insideOf(place, { namespace: "shop", rootKey: () => "" }));
  ports = [
    ["8000", String(await freePort())],
    ["8080", String(await freePort())],
  ];
  folder = await mkdtemp(join(tmpdir(), "postern-pages-"));
  await mkdir(join(folder, "bin"));
  await writeFile(join(folder, "bin/postern"), `#!/bin/sh\nexec '${process.execPath}' '${ROOT}/cli/main.ts' "$@"\n`);
  await chmod(join(folder, "bin/postern"), 0o755);
  const programsAt = [await findKubectl(), await findHelm()].map(dirname);
  env = {
    ...process.env,
    KUBECONFIG: settings.kubeconfig,
    XDG_CONFIG_HOME: folder,
    PATH: [join(folder, "bin"), ...programsAt, process.env.PATH].join(delimiter),
  };
}, 600_000);

afterAll(async () => {
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  if (place === undefined || process.env.E2E_KEEP === "1") return;
  const objects = "apikeys.postern.dev,apikeypolicies,ratelimitoverrides,ratelimitnamespaces,roles.postern.dev";
  await cluster.run(["annotate", "roles.postern.dev", "--all", "-A", "postern.dev/abandon=true"]);
  await cluster.run(["delete", objects, "--all", "-A", "--timeout=60s"]);
  await cluster.helm(["uninstall", RELEASE, "-n", "postern", "--ignore-not-found"]).catch(() => undefined);
  await cluster.run(["delete", "namespace", ...NAMESPACES, "--ignore-not-found", "--timeout=120s"]);
  await cluster.run(["delete", "--ignore-not-found", "--timeout=90s", ...(await ourCrds(cluster))]);
});

const withPorts = (line: string): string =>
  ports.reduce(
    (text, [port, other]) => text.replaceAll(new RegExp(`(?<=127\\.0\\.0\\.1:| )${port}\\b`, "g"), other),
    line,
  );

/** Runs lines of a page in one shell; throws what they said when one fails. Returns what they printed. */
async function shell(lines: string | readonly string[], cwd: string): Promise<string> {
  const script = [lines].flat().map(withPorts).join("\n");
  return (await run("bash", ["--norc", "-euo", "pipefail", "-c", script], { cwd, env, timeout: 120_000 })).stdout;
}

/** Runs a line that does not end, until the test does. Returns when it says that it is ready. */
async function keepRunning(line: string, ready: RegExp): Promise<() => Promise<void>> {
  const child = spawn("bash", ["--norc", "-c", `exec ${withPorts(line)}`], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const closed = once(child, "close");
  let said = "";
  child.stdout.on("data", (part) => (said += part));
  await waitFor(line, () => ready.test(said), { deadlineMs: 30_000 });
  return async () => {
    child.kill();
    await closed;
  };
}

/** A folder with the files of a page, and its steps. */
async function open(page: string) {
  const blocks = blocksOf(page);
  const dir = await mkdtemp(join(folder, "page-"));
  for (const { file, text } of blocks) if (file !== undefined) await writeFile(join(dir, file), text);
  const lines = stepsOf(blocks).map(({ line }) => line);
  const line = (start: RegExp): string => {
    const found = lines.find((one) => start.test(one));
    if (found === undefined) throw new Error(`${page} has no line ${start}`);
    return found;
  };
  const yaml = blocks.filter(({ language }) => language === "yaml").map(({ text }) => text);
  const apply = (...files: string[]) => cluster.kubectl(["apply", ...files.flatMap((file) => ["-f", join(dir, file)])]);
  return { dir, lines, line, yaml, apply };
}

const enforced = () =>
  cluster.until("enforced", ORDERS, (object: KubeObject) => conditionOf(object, "Enforced") === "True");
const untilAnswered = (status: number, path: string, headers: Record<string, string> = {}, method = "GET") =>
  waitFor(`${status} for ${path}`, async () => (await ask(path, { headers, method })) === status, {
    deadlineMs: 30_000,
    everyMs: 200,
  });

test("first policy guide leads from an open app to a key in a Secret", async () => {
  await install(place, present(settings));
  await cluster.kubectl(["create", "namespace", "shop"]);
  await cluster.apply(
    programs("shop"),
    pod("shop", "client", image, ["node", "-e", "setInterval(() => {}, 1e6)"]),
    ...guardedApp({ namespace: "shop", image, guarded: false }),
  );
  await cluster.kubectl(["-n", "shop", "wait", "pod/client", "--for=condition=Ready", "--timeout=60s"]);
  await cluster.kubectl(["-n", "shop", "rollout", "status", "deploy/orders", "--timeout=60s"]);
  await untilAnswered(200, "/orders");

  const { line, yaml } = await open("first-policy.md");
  const [policy = "", apiKey = ""] = yaml;
  await cluster.kubectl(["apply", "-f", "-"], policy);
  for (const start of [/ patch deployment /, / rollout status /, / wait apikeypolicy/]) await shell(line(start), ROOT);
  expect(await ask("/orders")).toBe(401);
  expect(await ask("/healthz")).toBe(200);
  await shell(line(/^helm upgrade /), ROOT);
  await cluster.kubectl(["apply", "-f", "-"], apiKey);
  await shell(line(/ wait apikey.postern.dev/), ROOT);

  const stop = await keepRunning(line(/ port-forward /), /Forwarding from/);
  onTestFinished(stop);
  expect(await shell(line(/^curl [^"]*$/), ROOT)).toMatch(/^HTTP\/1.1 401 /);
  await waitFor("the key to be known", async () =>
    (await shell(line(/^curl .*Bearer/), ROOT)).startsWith("HTTP/1.1 200 "),
  );
});

test("policy of the Audit guide admits and counts requests until one edit enforces it", async () => {
  const { line, apply, lines } = await open("guides/platform/audit-first.md");
  await apply("policy.yaml");
  await enforced();
  await untilAnswered(200, "/orders");
  const counts = (await shell(line(/ get --raw /), ROOT)).trim().split("\n");
  expect(counts).toHaveLength(2);
  expect(
    counts.reduce((sum, text) => sum + Number(text.replace(/^postern_sidecar_audited_refusals_total /, "")), 0),
  ).toBeGreaterThan(0);
  await shell(
    lines.filter((one) => /apikeypolicy|apikeypolicies/.test(one) && one.startsWith("kubectl ")),
    ROOT,
  );
  await untilAnswered(401, "/orders");
});

describe("with a root key at the terminal", () => {
  beforeAll(async () => {
    const { line } = await open("guides/platform/README.md");
    const stop = await keepRunning(line(/ port-forward /), /Forwarding from/);
    await shell(line(/ rootkey create /), ROOT);
    return stop;
  });

  /** Keys of the files that the pages show, where their callers send them. */
  test.each([
    { from: "kong", files: ["policy.yaml", "role.yaml"], headers: { apikey: "8VxQw2Lr5TnB7cJk9ZpM3d" } },
    { from: "apisix", files: ["policy.yaml", "role.yaml"], headers: { apikey: "2HqN5vB8xTc3Kj7LrWp9Zm" } },
    { from: "envoy-gateway", files: ["policy.yaml"], secret: "mobile", header: "X-API-Key", scheme: "" },
    {
      from: "kuadrant",
      files: ["policy.yaml", "role.yaml"],
      secret: "api_key",
      header: "Authorization",
      scheme: "APIKEY ",
    },
  ])("migration guide keeps the keys of $from working", async ({ from, files, headers, secret, header, scheme }) => {
    const { dir, lines, apply, yaml } = await open("guides/platform/migrate.md");
    await apply(...files);
    await enforced();
    const commands = lines.filter(
      (one) => one.startsWith("export ") || (one.includes(` ${from} `) && one.includes("--api-id")),
    );
    expect(commands).toHaveLength(2);
    // 1 when some key of the file cannot be taken over, as the page says.
    await shell(commands, dir).catch(({ code }) => expect(code).toBe(1));
    const given = headers ?? { [header]: `${scheme}${secretOf(yaml, secret)}` };
    await untilAnswered(200, "/orders", given);
    expect(await ask("/orders", { headers: { ...given, [header ?? "apikey"]: `${scheme ?? ""}other` } })).toBe(401);
  });

  test("explain guide diagnoses a rejected key with ids from the cluster", async () => {
    const { apply } = await open("guides/platform/rules.md");
    await apply("policy.yaml", "roles.yaml");
    await enforced();
    const { line, lines } = await open("explain.md");
    const [keyId, policyId] = await Promise.all(
      [
        ["apikeys.postern.dev", "orders-client", "{.status.keyId}"],
        ["apikeypolicy", "orders", "{.status.policyId}"],
      ].map(([kind = "", name = "", path]) =>
        cluster.kubectl(["-n", "shop", "get", kind, name, "-o", `jsonpath=${path}`]),
      ),
    );
    const command = line(/^postern explain/)
      .replace(/key_\w+/, keyId ?? "")
      .replace(/pol_\w+/, policyId ?? "");
    const said = await shell(command, ROOT).catch(({ stdout, code }) => `${code} ${stdout}`);
    // The key of the first policy has no permission.
    expect(said).toMatch(/^14 ✗ INSUFFICIENT_PERMISSIONS, 403 at a gate/);
    for (const one of lines.filter((text) => text.startsWith("kubectl ")))
      expect(await shell(one, ROOT)).toContain("orders");
  });
});

test("manifests of the shared-limit guide enforce one limit for apps of two namespaces", async () => {
  for (const name of ["billing", "platform"]) await cluster.kubectl(["create", "namespace", name]);
  const { apply } = await open("guides/platform/shared-limits.md");
  await apply("namespace.yaml", "policies.yaml", "override.yaml");
  await enforced();
  const key = Buffer.from((await cluster.get("secret", "orders-client-key", "shop"))?.data.key, "base64").toString();
  await untilAnswered(200, "/orders", { authorization: `Bearer ${key}` });
  await untilAnswered(429, "/orders", { authorization: `Bearer ${key}` });
});

test("on-call page names only objects and metrics that exist", async () => {
  const { lines } = await open("operations/alerts.md");
  const first = lines.slice(
    0,
    lines.findIndex((line) => line.includes("NAMESPACE")),
  );
  expect(first.length).toBeGreaterThan(4);
  for (const line of first) expect(await shell(line, ROOT), line).not.toBe("");
  const logs = await shell(first.find((line) => line.includes("component=operator")) ?? "", ROOT);
  expect(new Set([...logs.matchAll(/^\[pod\/([^/]+)/gm)].map(([, name]) => name)).size).toBe(2);
  // The throw-away Redis has its address in another Secret.
  const url = "redis://default:postern@postern-dev-redis.postern.svc:6379";
  await cluster.apply({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "postern-redis", namespace: "postern" },
    stringData: { url },
  });
  const look = lines.filter((line) => / (look|pod\/look)\b/.test(line));
  expect(look).toHaveLength(4);
  const said = await shell(
    look.map((line) => line.replace("redis:7", settings.redisImage)),
    ROOT,
  );
  expect(said).toContain("role:master");

  const inPod = "kubectl -n postern exec deploy/postern-api-server -- node /app/main.mjs";
  const made = await shell([`${inPod} rootkey create --role viewer --json`], ROOT);
  expect(JSON.parse(made).permissions).toContain("workspace.*.read_root_key");
});

test("uninstall page removes the installation and lets namespaces be deleted", async () => {
  const { lines } = await open("install.md");
  const removing = lines.slice(lines.findIndex((line) => line.includes("postern.dev/abandon")));
  const [letGo, ...more] = removing.splice(3);
  expect([removing.length, more]).toEqual([3, []]);
  await shell(removing, ROOT);
  // One that is deleted after the operator went hangs, until the page's line lets it go.
  const metadata = { name: "hanging", namespace: "shop", finalizers: ["postern.dev/store"] };
  await cluster.apply({
    apiVersion: "postern.dev/v1alpha1",
    kind: "Role",
    metadata,
    spec: { name: "hanging", permissions: ["a.b"] },
  });
  await cluster.kubectl(["-n", "shop", "delete", "role.postern.dev", "hanging", "--wait=false"]);
  expect((await cluster.get("role.postern.dev", "hanging", "shop"))?.metadata.deletionTimestamp).toBeDefined();
  await shell([letGo ?? ""], ROOT);
  expect(await cluster.get("role.postern.dev", "hanging", "shop")).toBeUndefined();
  await cluster.kubectl(["delete", "namespace", ...NAMESPACES, "--timeout=120s"]);
});

function secretOf(yaml: readonly string[], name = ""): string {
  const lists = yaml.flatMap((text) => parseAllDocuments(text).map((document) => document.toJS()));
  const data = lists
    .flatMap(({ items = [] }) => items)
    .map((item: { data?: Record<string, string> }) => item.data?.[name]);
  return Buffer.from(data.find((text) => text !== undefined) ?? "", "base64").toString();
}
