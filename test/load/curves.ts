import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { takePicture } from "../dashboard/picture.ts";
import { startChromium } from "../harness/chromium.ts";

export interface Chart {
  readonly title: string;
  /** Both axes may be logarithmic, for numbers that grow by factors. */
  readonly isLogarithmic?: boolean;
  readonly x: { readonly label: string; readonly values: readonly number[] };
  readonly curves: ReadonlyArray<{ readonly label: string; readonly values: readonly number[] }>;
}

const SIZE = { width: 1280, height: 340 };
const COLORS = ["#2563eb", "#c2410c", "#15803d"];

const uplot = (file: string): string =>
  readFileSync(createRequire(import.meta.url).resolve(`uplot/dist/${file}`), "utf8");

/** Draws charts beside each other into a picture of docs/pictures/. */
export async function drawCurves(name: string, charts: readonly Chart[]): Promise<void> {
  const browser = await startChromium();
  try {
    const page = await browser.newPage({ viewport: SIZE });
    await page.setContent(
      `<style>${uplot("uPlot.min.css")} body { display: flex; margin: 0; background: #fff }</style><body></body>`,
    );
    await page.addScriptTag({ content: uplot("uPlot.iife.min.js") });
    await page.evaluate(plotAll, { charts, width: SIZE.width / charts.length, height: SIZE.height, colors: COLORS });
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
    await takePicture(page, name);
  } finally {
    await browser.close();
  }
}

interface Plotting {
  readonly charts: readonly Chart[];
  readonly width: number;
  readonly height: number;
  readonly colors: readonly string[];
}

/** Runs in the page, so it uses nothing from outside. */
function plotAll({ charts, width, height, colors }: Plotting): void {
  const { uPlot, document } = globalThis as unknown as {
    uPlot: new (options: object, data: unknown, parent: unknown) => unknown;
    document: { body: unknown };
  };
  for (const { title, x, curves, isLogarithmic = false } of charts) {
    const scale = isLogarithmic ? { distr: 3 } : {};
    const options = {
      ...{ title, width, height: height - 60, padding: [null, 48, null, null] },
      scales: { x: { time: false, ...scale }, y: { range: isLogarithmic ? undefined : [0, null], ...scale } },
      axes: [{ label: x.label }, { size: 60 }],
      legend: { live: false },
      series: [
        { label: x.label },
        ...curves.map(({ label }, n) => ({ label, stroke: colors[n], width: 2, points: { show: true, size: 7 } })),
      ],
    };
    new uPlot(options, [x.values, ...curves.map(({ values }) => values)], document.body);
  }
}
