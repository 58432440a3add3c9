import { type Seen, statusesOf } from "./measure.ts";
import { ASKS, type Ask, type Row } from "./rows.ts";
import { SHOWN, type Shown } from "./shown.ts";

/** The page docs/outages.md: what is promised in each outage, and what was seen. */
export function toPage(measured: readonly { readonly row: Row; readonly seen: Seen }[]): string {
  return [
    "<!-- Written by `npm run outages`, which makes each of these outages happen. Do not edit. -->",
    "# Outages, as they were seen",
    "",
    "Each row of [When something is down](architecture.md#when-something-is-down), in every way that is tried, on real processes: an api-server, gates, an app, Postgres and Redis,",
    "with lines between them that delay, lose, reset, hold or falsify what they carry. Each outage lasts three seconds, and everything is asked all the time. A number is a status; 0 is no answer; late is when it was over;",
    "rarely is less than a tenth. A gate's call of the counters has 50 ms, which a busy machine exceeds now and then. The slowest is the gate's slowest answer.",
    "`test/outages` makes them happen in each run of the tests and fails when a promise does not hold. The figures are of one run, on two cores that others use too.",
    "",
    `| down | how | promised | ${Object.values(ASKS).join(" | ")} | slowest | as always after |`,
    `|---|---|---|${"---|".repeat(Object.keys(ASKS).length)}---|---|`,
    ...measured.map(({ row, seen }) => {
      const statuses = (Object.keys(ASKS) as Ask[]).map((what) => cellOf(seen, what));
      const [slowest, after] = [seen.slowestMs, seen.normalAfterMs ?? Number.NaN].map(inSeconds);
      return `| ${[...cellsOf(row), ...statuses, slowest, after].join(" | ")} |`;
    }),
    "",
    "What the outages above do not ask is shown by other tests:",
    "",
    "| down | what | test |",
    "|---|---|---|",
    ...SHOWN.map((shown) => `| ${toShownCells(shown).join(" | ")} |`),
    "",
  ].join("\n");
}

function cellOf(seen: Seen, what: Ask): string {
  const during = statusesOf(seen.statuses[what]).map(({ status, throttle }) =>
    throttle ? `rarely ${status}` : status,
  );
  const late = statusesOf(seen.late[what]).map(({ status }) => `${status} late`);
  return (during.length === 0 ? late : during).join(", ");
}

export const toShownCells = ({ down, what, file, name }: Shown): string[] => [down, what, `\`${file}\`: ${name}`];

/** What of a row of the page does not come from a measurement. */
export const cellsOf = ({ down, how, promised }: Row): string[] => [down, how, promised];

const inSeconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
