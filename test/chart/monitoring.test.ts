import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { METRICS } from "../../scripts/metric-groups.ts";

/* test/operations/metrics.test.ts compares METRICS with the exported metrics. */

const ROOT = resolve(import.meta.dirname, "../..");
const FILES = join(ROOT, "charts/postern/files");

/** Labels that Prometheus adds to every series. */
const FROM_PROMETHEUS = ["namespace", "pod", "job", "instance"];

const known = new Map<string, readonly string[]>(
  METRICS.map(({ name, labels, type }) => [
    type === "histogram" ? `${name}_bucket` : name,
    [...Object.keys(labels ?? {}), ...(type === "histogram" ? ["le"] : [])],
  ]),
);
const labelsOf = (series: string): readonly string[] | undefined => known.get(series);

const alerts = (
  parse(readFileSync(join(FILES, "alerts.yaml"), "utf8")) as Array<{ rules: Array<{ alert: string; expr: string }> }>
).flatMap(({ rules }) => rules.map(({ alert, expr }) => ({ where: alert, expr })));

const panels = globSync("dashboards/*.json", { cwd: FILES }).flatMap((name) => {
  const dashboard = JSON.parse(readFileSync(join(FILES, name), "utf8")) as {
    panels: Array<{ title: string; targets?: Array<{ expr: string }> }>;
  };
  return dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ where: `${name}: ${title}`, expr })),
  );
});

test("monitoring chart contains alerts and dashboards", () => {
  expect(alerts.length).toBeGreaterThan(25);
  expect(panels.length).toBeGreaterThan(20);
});

test.each([...alerts, ...panels])("$where uses only exported metrics and existing labels", ({ expr }) => {
  const series = [...expr.matchAll(/\b(postern_\w+)(?:\{([^}]*)\})?/g)];
  expect(series.length).toBeGreaterThan(0);
  for (const [, name = "", matchers = ""] of series) {
    const labels = labelsOf(name);
    expect(labels, name).toBeDefined();
    const asked = [...matchers.matchAll(/(\w+)\s*[!=]~?/g)].map(([, label = ""]) => label);
    expect([...FROM_PROMETHEUS, ...(labels ?? [])], name).toEqual(expect.arrayContaining(asked));
  }
  const all = series.flatMap(([, name = ""]) => labelsOf(name) ?? []);
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/\s*,\s*/));
  expect([...FROM_PROMETHEUS, ...all]).toEqual(expect.arrayContaining(grouped));
});
