import type { ReactNode } from "react";
import { type UsageOf, useUsage } from "../api/use-usage.ts";
import { ErrorNote } from "./error-note.tsx";
import { OutcomesPlot } from "./outcomes-plot.tsx";
import { plotSpacePx } from "./plot.tsx";
import { Skeleton } from "./skeleton.tsx";
import { UsageOff } from "./usage-off.tsx";

/** Reads and shows the verifications of the last 30 days by outcome. */
export function UsagePlot({ of, label, heightPx }: { of: UsageOf; label: string; heightPx?: number }): ReactNode {
  const { outcomes, error, isOff, isLoading, countedUntilMs, again } = useUsage(of, "30d");
  if (isOff) return <UsageOff />;
  if (error !== null) return <ErrorNote error={error} doing="Reading the usage" again={again} />;
  if (outcomes === undefined) return isLoading ? <Skeleton heightPx={plotSpacePx(heightPx)} /> : null;
  return (
    <OutcomesPlot
      label={label}
      outcomes={outcomes}
      countedUntilMs={countedUntilMs}
      {...(heightPx === undefined ? {} : { heightPx })}
    />
  );
}
