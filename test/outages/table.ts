import { type Seen, statusesOf } from "./measure.ts";
import { ASKS, type Ask, type Row } from "./rows.ts";
import { SHOWN, type Shown } from "./shown.ts";

/** Returns the report of a complete run: the promise for each outage, and the observed statuses. */
export function toPage(measured: readonly { readonly row: Row; readonly seen: Seen }[]): string {
  return [
    "# Outage report",
    "",
    "Written by `npm run outages`. The promises are in docs/operations/failure-modes.md.",
    "",
    "Each outage lasts 3 s while clients send requests continuously to an api-server, gates, an app, Postgres and Redis, with proxies",
    "between them that delay, drop, reset, hold or falsify data. A number is a status, 0 is a missing response, `late` came after the",
    "outage, `rarely` is less than a tenth. `slowest` is the slowest response of the gate.",
    "",
    `| down | how | promised | ${Object.values(ASKS).join(" | ")} | slowest | as always after |`,
    `|---|---|---|${"---|".repeat(Object.keys(ASKS).length)}---|---|`,
    ...measured.map(({ row, seen }) => {
      const statuses = (Object.keys(ASKS) as Ask[]).map((what) => cellOf(seen, what));
      const [slowest, after] = [seen.slowestMs, seen.normalAfterMs ?? Number.NaN].map(inSeconds);
      return `| ${[...cellsOf(row), ...statuses, slowest, after].join(" | ")} |`;
    }),
    "",
    "Other tests cover:",
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

export const toShownCells = ({ down, what, file, name }: Shown): string[] => [
  down ?? "–",
  what,
  `\`${file}\`: ${name}`,
];

/** Cells of a row that are not measured. */
export const cellsOf = ({ down, how, promised }: Row): string[] => [down, how, promised];

const inSeconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
