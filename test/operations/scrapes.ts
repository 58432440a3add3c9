/** Result of one `GET /metrics`. */
export interface Scrape {
  readonly text: string;
  /** Type of each metric by name. */
  readonly types: ReadonlyMap<string, string>;
  readonly series: readonly Series[];
}

export interface Series {
  /** Metric name without `_bucket`, `_sum` and `_count` of a histogram. */
  readonly metric: string;
  /** Labels without the `le` of a bucket. */
  readonly labels: Readonly<Record<string, string>>;
}

export async function scrape(url: string): Promise<Scrape> {
  const response = await fetch(url, { signal: AbortSignal.timeout(10_000) });
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  return readScrape(await response.text());
}

export function readScrape(text: string): Scrape {
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = "", type = ""]) => [name, type]));
  const series: Series[] = [];
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const [, name = "", pairs = ""] = /^(\w+)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
    const metric = types.has(name) ? name : name.replace(/_(?:bucket|sum|count)$/, "");
    if (!types.has(metric)) throw new Error(`not understood: ${line}`);
    const { le, ...labels } = Object.fromEntries(
      [...pairs.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label = "", value = ""]) => [label, value]),
    );
    if ((le !== undefined) !== name.endsWith("_bucket")) throw new Error(`le belongs to buckets: ${line}`);
    series.push({ metric, labels });
  }
  return { text, types, series };
}
