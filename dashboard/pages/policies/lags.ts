import { MARKS, type PlotSeries } from "../../components/plot-marks.ts";

/*
 * Lags of a policy's pods over the last minutes. The page records them while it is open, because the server keeps no history. The plot has
 * one line per pod, limited to the worst pods, and one line for the number of lagging pods. The functions are pure.
 */

export interface Sample {
  readonly atMs: number;
  readonly pods: readonly { readonly podId: string; readonly stalenessMs: number; readonly state: string }[];
}

/** Maximum number of samples: five minutes at one sample every 1.5 s. */
export const SAMPLES_MAX = 200;
const KEPT_MS = 300_000;
const LINES_MAX = 6;

export const withSample = (samples: readonly Sample[], sample: Sample): readonly Sample[] =>
  samples.at(-1)?.atMs === sample.atMs
    ? samples
    : [...samples.filter(({ atMs }) => atMs > sample.atMs - KEPT_MS), sample].slice(-SAMPLES_MAX);

/** Returns lags in seconds. A lag is `null` if the pod had not reported, or did not know its lag. */
export function lagSeries(samples: readonly Sample[]): readonly PlotSeries[] {
  const latest = samples.at(-1)?.pods ?? [];
  const ever = new Map<string, number>();
  for (const { pods } of samples)
    for (const { podId, stalenessMs } of pods) ever.set(podId, Math.max(ever.get(podId) ?? 0, stalenessMs));
  const worst = [...ever].sort(([a, lagA], [b, lagB]) => lagB - lagA || (a < b ? -1 : 1)).slice(0, LINES_MAX);
  const names = worst.map(([podId]) => podId).sort();
  const lines = names.map(
    (podId, place): PlotSeries => ({
      name: podId,
      label: podId,
      mark: MARKS[place] ?? (MARKS[0] as PlotSeries["mark"]),
      values: samples.map(({ pods }) => secondsOf(pods.find((pod) => pod.podId === podId)?.stalenessMs)),
      total: secondsOf(latest.find((pod) => pod.podId === podId)?.stalenessMs) ?? undefined,
    }),
  );
  return [
    ...lines,
    {
      name: "\u0000behind",
      label: "pods with an older version",
      mark: MARKS[LINES_MAX] ?? (MARKS[0] as PlotSeries["mark"]),
      values: samples.map(({ pods }) => pods.filter(({ state }) => state !== "updated").length),
      total: latest.filter(({ state }) => state !== "updated").length,
    },
  ];
}

const secondsOf = (ms: number | undefined): number | null =>
  ms === undefined || ms >= Number.MAX_SAFE_INTEGER ? null : ms / 1000;
