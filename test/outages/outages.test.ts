import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { broken, measure, type Seen } from "./measure.ts";
import { ROWS, type Row } from "./rows.ts";
import { toPage } from "./table.ts";
import { openWorld, type World } from "./world.ts";

/* `npm run outages` runs every outage (OUTAGES=1) and writes the results to .postern/outages.md. The regular run tries about a third. */

const isComplete = process.env.OUTAGES === "1";
/** The first outage of each component, and every fourth. */
const TRIED = ROWS.filter(({ down }, i) => isComplete || i % 4 === 0 || ROWS[i - 1]?.down !== down);

describe("in each outage the promises hold, and everything recovers afterwards", () => {
  let world: World;
  let close: () => Promise<void> = async () => {};
  const measured: { row: Row; seen: Seen }[] = [];
  beforeAll(async () => {
    world = await openWorld((closing) => {
      close = closing;
    });
  });
  afterAll(async () => {
    await close();
    if (!isComplete || measured.length < ROWS.length) return;
    const folder = resolve(import.meta.dirname, "../../.postern");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "outages.md"), toPage(measured));
  });

  // Not as $how, which would be shortened.
  test.each(TRIED.map((row) => [`${row.down} (${row.how})`, row] as const))(
    "system keeps its documented promises during the outage: %s",
    async (_, row) => {
      const seen = await measure(world, row);
      measured.push({ row, seen });
      expect(broken(row, seen)).toEqual([]);
    },
  );
});
