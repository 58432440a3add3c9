import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { findGoProgram } from "../harness/parts/go-program.ts";
import { findHelm } from "../harness/parts/helm.ts";
import { runWithJson } from "../harness/run-with-json.ts";
import { ALERT_CASES, type AlertCase } from "./alert-cases.ts";
import { render } from "./render.ts";

/* Evaluates each alert of the rendered PrometheusRule with the Prometheus engine. */

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

const BUILD_MS = 1_200_000;
const RELEASE = "postern";

let rules: Rule[];
beforeAll(async () => {
  await Promise.all([findHelm(), findEngine()]);
  const values = {
    operator: { clusterName: "c" },
    database: { existingSecret: "d" },
    redis: { existingSecret: "r" },
    injection: { enabled: false },
    monitoring: { prometheusRule: { enabled: true } },
  };
  const rule = (await render(values, RELEASE)).find(({ kind }) => kind === "PrometheusRule");
  rules = rule?.spec.groups.flatMap((group: { rules: Rule[] }) => group.rules);
}, BUILD_MS);

const findEngine = () =>
  findGoProgram({
    name: "alert-engine",
    source: "chart/alerts.go",
    modules: ["github.com/prometheus/prometheus@v0.305.0"],
  });

/** Returns the summaries of the alert for these series at the end of the period. */
async function summariesOf({ alert, minutes = 30 }: AlertCase, series: readonly string[]): Promise<string[]> {
  const rule = rules.find((one) => one.alert === alert);
  if (rule === undefined) throw new Error(`there is no alert ${alert}`);
  const load = `load 1m\n${series.map((line) => `  ${line}`).join("\n")}\n`;
  const { expr, for: pending = "0s", annotations } = rule;
  const response = await runWithJson(await findEngine(), [], [{ expr, for: pending, annotations, load, minutes }]);
  return (JSON.parse(response) as Array<Array<{ summary: string }>>)[0]?.map(({ summary }) => summary) ?? [];
}

const inNamespace = (series: readonly string[], namespace: string) =>
  series.map((line) => line.replace("NS", `namespace="${namespace}"`));
const isOfGates = ({ alert }: AlertCase) => /^Postern(Gate|Upstream)/.test(alert);
/** Series of another Postern in the cluster, which must not affect the alerts. Gates of a cluster run in any namespace. */
const elsewhere = (one: AlertCase, series: readonly string[]) =>
  isOfGates(one) ? [] : inNamespace(series, "elsewhere");

test.each(ALERT_CASES)("alert $alert fires despite other installations: $says", async (one) => {
  const series = [...inNamespace(one.fires, isOfGates(one) ? "shop" : RELEASE), ...elsewhere(one, one.quiet)];
  const summaries = await summariesOf(one, series);
  expect(summaries).toEqual([expect.stringMatching(one.says)]);
});

test.each(ALERT_CASES)("alert $alert does not fire in a healthy installation: $says", async (one) => {
  const series = [...inNamespace(one.quiet, isOfGates(one) ? "shop" : RELEASE), ...elsewhere(one, one.fires)];
  expect(await summariesOf(one, series)).toEqual([]);
});

test("every alert has a test case and a severity", () => {
  expect([...new Set(ALERT_CASES.map(({ alert }) => alert))]).toEqual(rules.map(({ alert }) => alert));
  for (const rule of rules)
    expect(rule, rule.alert).toMatchObject({ labels: { severity: expect.stringMatching(/^(warning|critical)$/) } });
});

test("every alert has a page section with its meaning and action, and vice versa", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/operations/alerts.md"), "utf8");
  const parts = new Map(
    page
      .split(/^### /m)
      .slice(1)
      .map((part) => [part.split("\n", 1)[0] ?? "", part.split(/^## /m)[0] ?? ""]),
  );
  expect([...parts.keys()]).toEqual(rules.map(({ alert }) => alert));
  for (const { alert, annotations } of rules) {
    // A relative path is no valid link in an Alertmanager message.
    expect(new URL(annotations.runbook_url)).toMatchObject({ protocol: "https:", hash: `#${alert.toLowerCase()}` });
    const [, meaning = "", ...rest] = (parts.get(alert) ?? "").split(/\n\n/);
    expect(meaning, alert).toMatch(/^[A-Z].{30,}/s);
    const said = [...rest.join("\n\n").matchAll(/^- \*\*(.*?):\*\* (.{10,})$/gm)].map(([, what]) => what);
    expect(said.join(), alert).toMatch(/^(Check,Action|Check and action)$/);
  }
});
