import { describe, expect, test } from "vitest";
import { Watermark } from "./watermark.ts";

const oldest = (marks: Record<string, number> = {}) => new Map(Object.entries(marks));
const said = (watermark: Watermark, marks: Record<string, number> = {}): Record<string, number> | undefined => {
  const until = watermark.until(oldest(marks));
  return until === undefined ? undefined : { asOfMs: until.asOfMs, ...Object.fromEntries(until.lagging) };
};

test("relay watermark is unknown before the first scan", () => {
  expect(said(new Watermark())).toBeUndefined();
});

test("outbox entry written after the scan does not delay the watermark", () => {
  const watermark = new Watermark();
  watermark.scanned({ asOfMs: 1000, newest: 10 });
  expect(said(watermark, { ws_a: 11 })).toEqual({ asOfMs: 1000 });
});

describe("a workspace with an entry in the scan", () => {
  test("watermark of a workspace with a pending entry is the time of the last scan before the entry", () => {
    const watermark = new Watermark();
    watermark.scanned({ asOfMs: 1000, newest: 10 });
    expect(said(watermark)).toEqual({ asOfMs: 1000 });
    watermark.scanned({ asOfMs: 2000, newest: 500 });
    expect(said(watermark, { ws_a: 11 })).toEqual({ asOfMs: 2000, ws_a: 1000 });
    watermark.scanned({ asOfMs: 3000, newest: 900 });
    expect(said(watermark, { ws_a: 300, ws_b: 850 })).toEqual({ asOfMs: 3000, ws_a: 1000, ws_b: 2000 });
    // It has delivered what the second scan saw, but not the third.
    expect(said(watermark, { ws_a: 501 })).toEqual({ asOfMs: 3000, ws_a: 2000 });
    expect(said(watermark)).toEqual({ asOfMs: 3000 });
  });

  test("watermark of a workspace is unknown if no scan precedes its pending entry", () => {
    const watermark = new Watermark();
    watermark.scanned({ asOfMs: 1000, newest: 10 });
    expect(said(watermark, { ws_a: 10 })).toEqual({ asOfMs: 1000, ws_a: 0 });
  });

  test("watermark never goes back, even if an old transaction commits late", () => {
    const watermark = new Watermark();
    watermark.scanned({ asOfMs: 1000, newest: 10 });
    expect(said(watermark)).toEqual({ asOfMs: 1000 });
    watermark.scanned({ asOfMs: 2000, newest: 20 });
    expect(said(watermark)).toEqual({ asOfMs: 2000 });
    watermark.scanned({ asOfMs: 3000, newest: 30 });
    expect(said(watermark, { ws_a: 5 })).toEqual({ asOfMs: 3000, ws_a: 2000 });
  });

  test("watermark of a lagging workspace is constant until it has caught up", () => {
    const watermark = new Watermark();
    watermark.scanned({ asOfMs: 1000, newest: 10 });
    watermark.until(oldest());
    for (let at = 2; at < 1000; at++) {
      watermark.scanned({ asOfMs: at * 1000, newest: at * 10 });
      expect(said(watermark, { ws_a: 11 })).toEqual({ asOfMs: at * 1000, ws_a: 1000 });
    }
    // At most some scans after the last one before the mark.
    const late = said(watermark, { ws_a: 9000 })?.ws_a ?? 0;
    expect(late).toBeLessThanOrEqual(900_000);
    expect(late).toBeGreaterThan(0);
  });
});
