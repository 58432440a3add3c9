import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PodReports } from "../../../edge/pods/contract.ts";
import { aName, EDGES, type OpenedEdge } from "./edges.ts";

describe.each(EDGES)("reports of pods $name", ({ open }) => {
  let opened: OpenedEdge;
  let pods: PodReports;

  beforeAll(async () => {
    opened = await open();
    pods = opened.edge.pods;
  });
  afterAll(() => opened.close());

  const aReport = () => ({
    workspaceId: "ws_1",
    policyId: aName("pol"),
    podId: "pod-1",
    generation: 1,
    version: 7,
    stalenessMs: 12,
  });

  test("pod reports list the last report of each pod", async () => {
    const report = aReport();
    await pods.report({ ...report, podId: "pod-2", stalenessMs: Number.POSITIVE_INFINITY });
    await pods.report(report);
    await pods.report({ ...report, generation: 2 });
    const listed = await pods.list(report);
    expect(listed).toMatchObject([
      { ...report, generation: 2 },
      { ...report, podId: "pod-2", stalenessMs: Number.POSITIVE_INFINITY },
    ]);
    for (const { lastSeenMs } of listed) expect(Math.abs(lastSeenMs - Date.now())).toBeLessThan(10_000);
    expect(await pods.list({ ...report, workspaceId: "ws_2" })).toEqual([]);
  });

  test("pod reports of several policies are listed in request order", async () => {
    const [one, none, other] = [aReport(), aReport(), { ...aReport(), workspaceId: "ws_2" }];
    await pods.report(one);
    await pods.report({ ...other, podId: "pod-9" });
    await pods.report({ ...other, podId: "pod-10" });
    const listed = await pods.listEach([other, none, one]);
    expect(listed.map((reports) => reports.map(({ podId }) => podId))).toEqual([["pod-10", "pod-9"], [], ["pod-1"]]);
    expect(await pods.listEach([])).toEqual([]);
  });

  test("pod report describes an unsupported policy in one line of limited length", async () => {
    const report = { ...aReport(), generation: 0, version: 0 };
    await pods.report({ ...report, refused: { version: 8, reason: `format 2\n\u0000${"x".repeat(1000)}` } });
    const [told] = await pods.list(report);
    expect(told).toMatchObject({ ...report, refused: { version: 8 } });
    expect(told?.refused?.reason).toMatch(/^format 2 {2}x+$/);
    expect(told?.refused?.reason).toHaveLength(300);
    await pods.report(report);
    expect((await pods.list(report))[0]).not.toHaveProperty("refused");
  });

  test("pod report lists the upstream port of a gate if known", async () => {
    const report = aReport();
    await pods.report({ ...report, upstreamPort: 8080 });
    await pods.report({ ...report, podId: "pod-of-a-former-release" });
    const [fronting, silent] = await pods.list(report);
    expect(fronting?.upstreamPort).toBe(8080);
    expect(silent).not.toHaveProperty("upstreamPort");
  });

  test("pod report has the rejections by rule, the version and the region", async () => {
    const report = aReport();
    const refusals = {
      sinceMs: 1_767_225_600_000,
      mode: "Audit" as const,
      counts: [{ rule: -1, code: "MISSING_KEY", count: 214 }],
      others: 3,
    };
    const said = { refusals, release: "9.8.7-rc.1", region: "eu-1" };
    await pods.report({ ...report, ...said });
    expect((await pods.list(report))[0]).toMatchObject(said);
    await pods.report(report);
    expect((await pods.list(report))[0]).not.toHaveProperty("refusals");
  });

  test("removed pod report is no longer listed", async () => {
    const report = aReport();
    await pods.report(report);
    await pods.remove(report);
    await pods.remove(report);
    expect(await pods.list(report)).toEqual([]);
  });
});
