import { afterAll, beforeAll, expect, test } from "vitest";
import { type DevControl, refillInDev, startDevControl } from "./dev-control.ts";

const asked: string[] = [];
let control: DevControl;
beforeAll(async () => {
  control = await startDevControl({
    refill: async (date) => {
      asked.push(date);
      if (date === "2041-01-01") throw new Error("no store");
      return date === "2041-01-02" ? undefined : { refilled: 7, failed: 0 };
    },
  });
});
afterAll(() => control.close());

test("a caller with the token gets a refill, and the number of keys or the failure", async () => {
  expect(await refillInDev(control.state, "2041-01-03")).toEqual({ refilled: 7, failed: 0 });
  expect(await refillInDev(control.state, "2041-01-02")).toBeUndefined();
  await expect(refillInDev(control.state, "2041-01-01")).rejects.toThrow("the running postern dev failed: no store");
});

test("a request without the token, or with another path or method, does nothing", async () => {
  asked.length = 0;
  const { url, token } = control.state;
  const status = async (path: string, method: string, authorization: string) =>
    (await fetch(`${url}${path}`, { method, headers: { authorization } })).status;
  for (const authorization of ["", "Bearer", `Bearer ${token}x`, `Bearer ${"x".repeat(token.length)}`, token]) {
    expect(await status("/refill/2041-01-03", "POST", authorization)).toBe(401);
  }
  expect(await status("/refill/2041-01-03", "GET", `Bearer ${token}`)).toBe(404);
  expect(await status("/refill/today", "POST", `Bearer ${token}`)).toBe(404);
  expect(asked).toEqual([]);
});
