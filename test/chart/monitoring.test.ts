import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";

const ROOT = resolve(import.meta.dirname, "../..");
const FILES = join(ROOT, "charts/postern/files");

/** Every metric that a source names, with its labels as they stand after the name. */
const sources = globSync("{api-server,edge,operator,sidecar}/**/*.ts", { cwd: ROOT })
  .filter((name) => !name.endsWith(".test.ts"))
  .map((name) => readFileSync(join(ROOT, name), "utf8"))
  .join("\n");

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

test("there are alerts and a dashboard", () => {
  expect(alerts.length).toBeGreaterThan(5);
  expect(panels.length).toBeGreaterThan(5);
});

test.each([...alerts, ...panels])("$where asks for metrics that are exported", ({ expr }) => {
  const metrics = [...expr.matchAll(/\bpostern_\w+/g)].map(([name]) => name);
  expect(metrics.length).toBeGreaterThan(0);
  const isExported = (name: string) =>
    sources.includes(`"${name}"`) || sources.includes(`"${name.replace(/_bucket$/, "")}"`);
  expect(metrics.filter((name) => !isExported(name))).toEqual([]);
});

test.each([...alerts, ...panels])("$where groups by labels that some metric has", ({ expr }) => {
  const labels = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/\s*,\s*/));
  // `le` is of histograms, the others come from Prometheus.
  const given = ["le", "namespace", "pod"];
  expect(labels.filter((label) => !given.includes(label) && !sources.includes(`"${label}"`))).toEqual([]);
});
