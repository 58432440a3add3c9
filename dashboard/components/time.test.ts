import { expect, test } from "vitest";
import {
  agoLastsMs,
  agoText,
  durationText,
  exactText,
  fullText,
  localInput,
  readLocalInput,
  shortText,
} from "./time.ts";

const NOW = Date.UTC(2026, 2, 1, 14, 5, 9);

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [1000, "1 s"],
  [90_000, "1 min 30 s"],
  [3_600_000, "1 h"],
  [3_601_000, "1 h"],
  [90_061_000, "1 d 1 h"],
])("duration of %d ms is displayed as %s", (ms, text) => expect(durationText(ms)).toBe(text));

test.each([
  [0, "now"],
  [999, "now"],
  [1000, "1 s ago"],
  [119_999, "1 min ago"],
  [120_000, "2 min ago"],
  [86_400_000 * 40, "40 d ago"],
  [-1000, "in 1 s"],
  [-86_400_000 * 3, "in 3 d"],
])("time %d ms ago is displayed as %s", (before, text) => expect(agoText(NOW - before, NOW)).toBe(text));

test.each([500, 1500, 61_000, 3_599_999, 7_200_001, -1500, -61_000, -90_000_000])(
  "relative time text for %d ms stays valid until its next update",
  (before) => {
    const at = NOW - before;
    const lasts = agoLastsMs(at, NOW);
    const text = agoText(at, NOW);
    expect(agoText(at, NOW + lasts - 1)).toBe(text);
    expect(agoText(at, NOW + lasts)).not.toBe(text);
  },
);

test("exact time is displayed in UTC", () => expect(exactText(NOW)).toBe("2026-03-01 14:05:09 UTC"));

test.each([
  ["Asia/Kathmandu", "Mar 1, 2026, 19:50:09 GMT+5:45"],
  ["America/St_Johns", "Mar 1, 2026, 10:35:09 GMT-3:30"],
  ["UTC", "Mar 1, 2026, 14:05:09 UTC"],
])("complete time in %s includes its time zone", (zone, text) => expect(fullText(NOW, zone)).toBe(text));

test.each([
  [0, "19:50:09"],
  [20 * 3_600_000, "Feb 28, 23:50"],
  [60 * 86_400_000, "Dec 31, 2025"],
])("local time %d ms ago omits the parts that its age makes obvious", (before, text) =>
  expect(shortText(NOW - before, NOW, "Asia/Kathmandu")).toBe(text),
);

test.each([
  { zone: "Asia/Kathmandu", text: "2030-01-02T08:49", at: Date.UTC(2030, 0, 2, 3, 4) },
  { zone: "America/St_Johns", text: "2030-01-01T23:34", at: Date.UTC(2030, 0, 2, 3, 4) },
  // In 2026 summer time begins on March 29 at 2:00 and ends on October 25 at 3:00, when the clock shows 2:30 twice.
  { zone: "Europe/Berlin", text: "2026-03-29T01:59", at: Date.UTC(2026, 2, 29, 0, 59) },
  { zone: "Europe/Berlin", text: "2026-03-29T03:00", at: Date.UTC(2026, 2, 29, 1, 0) },
  { zone: "Europe/Berlin", text: "2026-10-25T02:30", at: Date.UTC(2026, 9, 25, 0, 30) },
  // A day that Samoa skipped as a whole is before and after it.
  { zone: "Pacific/Apia", text: "2011-12-31T00:00", at: Date.UTC(2011, 11, 30, 10, 0) },
])("text $text of a field in $zone is read and shown as the same time", ({ zone, text, at }) => {
  expect(readLocalInput(text, zone)).toBe(at);
  expect(localInput(at, zone)).toBe(text);
});

test.each([
  ["Europe/Berlin", "2026-03-29T02:30"],
  ["America/St_Johns", "2026-03-08T02:00"],
  ["Pacific/Apia", "2011-12-30T12:00"],
])("clock in the time zone %s skips the local time %s", (zone, text) =>
  expect(readLocalInput(text, zone)).toBe("skipped"),
);

test.each(["", "tomorrow", "2026-13-01T00:00"])("text %j is not a time", (text) =>
  expect(readLocalInput(text, "Asia/Kathmandu")).toBeUndefined(),
);
