import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startProcess } from "../../harness/process.ts";
import type { Case } from "./case.ts";
import { makeCase } from "./generate.ts";
import { complaintAbout, fuzzGate } from "./run.ts";
import { type OpenGate, openWorld, type World } from "./world.ts";

/*
 * Unexpected bytes of clients and apps, against sidecars as they run in a pod. `npm run fuzz:gate` does the same for
 * longer, with any seed, and saves what it finds as a file for `corpus/`.
 */

const CORPUS = join(import.meta.dirname, "corpus");
const SEED = 8;
/** Its first findings are answers that end. Others of this gate leave a connection open for 30 s each time they are played. */
const LEAKY_SEED = 2;
const SECONDS = 15;
/** Starting three processes, and making a finding small, takes minutes on a busy machine. */
const TIMEOUT_MS = 600_000;

test(`gate fuzzer with a fixed seed finds no failure in ${SECONDS} s`, { timeout: TIMEOUT_MS }, async () => {
  const report = await fuzzGate({ seed: SEED, seconds: SECONDS });
  expect(report.findings).toEqual([]);
  // Proves that the cases reached the apps.
  expect(report.cases).toBeGreaterThan(60);
  expect(report.seen).toBeGreaterThan(30);
});

describe("former findings stay fixed", () => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld();
  }, TIMEOUT_MS);
  afterAll(() => world?.close());

  test.each(readdirSync(CORPUS))("former gate fuzzing finding stays fixed: %s", async (name) => {
    const played: Case & { requests?: Case["requests"] } = JSON.parse(readFileSync(join(CORPUS, name), "utf8"));
    expect(await complaintAbout(world, { ...played, requests: played.requests })).toBeUndefined();
  });
});

test("gate fuzzer detects a gate that admits every request, and reproduces the case", {
  timeout: TIMEOUT_MS,
}, async () => {
  const openGate: OpenGate = async (app) => {
    const child = await startProcess(process.execPath, [join(import.meta.dirname, "leaky-proxy.ts")], {
      readyLine: /adminPort.*\n/,
      env: { LEAKY_UPSTREAM: app.url },
    });
    const { port, adminPort } = JSON.parse(child.stdout());
    return { process: child, port, adminPort, metrics: async () => "", close: async () => void (await child.stop()) };
  };
  const { findings } = await fuzzGate({ seed: LEAKY_SEED, seconds: SECONDS, openGate });
  expect(findings).toMatchObject([{ isReproduced: true }]);
});

test("gate fuzzer generates the same cases from a seed on every machine", () => {
  // The second is over HTTP/2.
  for (const number of [6, 7]) {
    expect(makeCase(SEED, number)).toEqual(makeCase(SEED, number));
    expect({ ...makeCase(SEED, number), id: "" }).not.toEqual({ ...makeCase(SEED + 1, number), id: "" });
  }
  expect([6, 7].map((number) => makeCase(SEED, number).streams !== undefined)).toEqual([false, true]);
});
