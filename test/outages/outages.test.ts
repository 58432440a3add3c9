import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { broken, measure, type Seen } from "./measure.ts";
import { ROWS, type Row } from "./rows.ts";
import { toPage } from "./table.ts";
import { openWorld, type World } from "./world.ts";

/* `npm run outages` runs this with OUTAGES=1: all of them, and writes docs/outages.md of what was seen. The tests make a third of them happen. */

const isComplete = process.env.OUTAGES === "1";
/** The first of each part that is down, and each fourth. */
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
    writeFileSync(resolve(import.meta.dirname, "../../docs/outages.md"), toPage(measured));
  });

  // Not as $how, which would be shortened.
  test.each(TRIED.map((row) => [`${row.down} (${row.how})`, row] as const))(
    "outage keeps its promises: %s",
    async (_, row) => {
      const seen = await measure(world, row);
      measured.push({ row, seen });
      expect(broken(row, seen)).toEqual([]);
    },
  );
});
