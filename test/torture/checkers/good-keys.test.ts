import { expect, test } from "vitest";
import { aCase, aChange, anAsk, aSample, created } from "./a-case.ts";
import { checkGoodKeys } from "./good-keys.ts";

const count = (recorded: Parameters<typeof aCase>[0]) => checkGoodKeys(aCase(recorded)).length;

test.each(["refused", "forbidden", "limited", "exhausted"] as const)(
  "good key checker rejects a response to a good key: %s",
  (response) => {
    expect(count({ changes: [created(0)], samples: [aSample(5, 1)], asks: [anAsk(6, response)] })).toBe(1);
  },
);

test("good key checker requires acceptance by the creating process and by processes that reported the key", () => {
  const asks = [anAsk(1, "refused"), anAsk(1, "refused", { process: "api-1" })];
  expect(count({ changes: [created(0)], asks })).toBe(1);
});

test("good key checker permits rejections of a reenabled key only until the process reports the change", () => {
  const changes = [created(0), aChange(10, { kind: "disable" }), aChange(12, { kind: "enable" })];
  const samples = [aSample(11, 0.5), aSample(14, 1)];
  expect(count({ changes, samples, asks: [anAsk(13, "refused")] })).toBe(0);
  expect(count({ changes, samples, asks: [anAsk(14.5, "refused")] })).toBe(1);
});

test("good key checker permits forbidden responses only on the guarded path", () => {
  const changes = [created(0), aChange(10, { kind: "forbid" })];
  const samples = [aSample(14, 1)];
  const asks = [anAsk(15, "forbidden", { needs: "own" }), anAsk(15, "forbidden")];
  expect(count({ changes, samples, asks })).toBe(1);
});

test("good key checker treats an unanswered change as possible", () => {
  const changes = [created(0), aChange(10, { kind: "disable" }, { outcome: "unknown" })];
  expect(count({ changes, samples: [aSample(14, 1)], asks: [anAsk(15, "refused")] })).toBe(0);
});

test("good key checker permits rate-limited responses only for limited keys, and exhausted ones only for keys with credits", () => {
  const asks = [
    anAsk(6, "limited", { keyKind: "limited" }),
    anAsk(6, "exhausted", { keyKind: "limited" }),
    anAsk(6, "exhausted", { keyKind: "credited" }),
    anAsk(6, "limited", { keyKind: "credited" }),
  ];
  expect(count({ changes: [created(0)], samples: [aSample(5, 1)], asks })).toBe(2);
});
