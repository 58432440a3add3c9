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
/** Summaries by the index of the case. */
let firing: string[][];
let healthy: string[][];
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
  firing = await evaluate(ALERT_CASES.map((one) => ({ one, series: seriesOf(one, one.fires, one.quiet) })));
  healthy = await evaluate(ALERT_CASES.map((one) => ({ one, series: seriesOf(one, one.quiet, one.fires) })));
}, BUILD_MS);

const findEngine = () =>
  findGoProgram({
    name: "alert-engine",
    source: "chart/alerts.go",
    modules: ["github.com/prometheus/prometheus@v0.305.0"],
  });

const inNamespace = (series: readonly string[], namespace: string) =>
  series.map((line) => line.replace("NS", `namespace="${namespace}"`));
const isOfGates = ({ alert }: AlertCase) => /^Postern(Gate|Upstream)/.test(alert);
/** Returns these series of the installation, and those of another one in the cluster, which must not affect the alert. */
const seriesOf = (one: AlertCase, here: readonly string[], elsewhere: readonly string[]) =>
  // Gates of a cluster run in any namespace.
  isOfGates(one) ? inNamespace(here, "shop") : [...inNamespace(here, RELEASE), ...inNamespace(elsewhere, "elsewhere")];

/** Returns the summaries of the alert of each case at the end of its period. One process evaluates all of them. */
async function evaluate(cases: ReadonlyArray<{ one: AlertCase; series: readonly string[] }>): Promise<string[][]> {
  const input = cases.map(({ one: { alert, minutes = 30 }, series }) => {
    const rule = rules.find((rule) => rule.alert === alert);
    if (rule === undefined) throw new Error(`there is no alert ${alert}`);
    const load = `load 1m\n${series.map((line) => `  ${line}`).join("\n")}\n`;
    return { expr: rule.expr, for: rule.for ?? "0s", annotations: rule.annotations, load, minutes };
  });
  const alerts = JSON.parse(await runWithJson(await findEngine(), [], input)) as Array<Array<{ summary: string }>>;
  return alerts.map((fired) => fired.map(({ summary }) => summary));
}

const CASES = ALERT_CASES.map((one, index) => ({ ...one, index }));

test.each(CASES)("alert $alert fires independently of other installations: $says", ({ says, index }) => {
  expect(firing[index]).toEqual([expect.stringMatching(says)]);
});

test.each(CASES)("alert $alert does not fire in a healthy installation: $says", ({ index }) => {
  expect(healthy[index]).toEqual([]);
});

test("every alert has a test case and a severity", () => {
  expect([...new Set(ALERT_CASES.map(({ alert }) => alert))]).toEqual(rules.map(({ alert }) => alert));
  for (const rule of rules)
    expect(rule, rule.alert).toMatchObject({ labels: { severity: expect.stringMatching(/^(warning|critical)$/) } });
});

test("every alert has a section of the alerts page with meaning and action, and every section has an alert", () => {
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
