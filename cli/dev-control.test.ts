import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
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

test("dev control runs a refill for a caller with the token, and returns the number of refills or the error", async () => {
  expect(await refillInDev(control.state, "2041-01-03")).toEqual({ refilled: 7, failed: 0 });
  expect(await refillInDev(control.state, "2041-01-02")).toBeUndefined();
  await expect(refillInDev(control.state, "2041-01-01")).rejects.toThrow("the running postern dev failed: no store");
});

test("dev control ignores a request without the token or with another path or method", async () => {
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

test("dev control token is sent only to the address in the state file", async () => {
  asked.length = 0;
  const other = createServer(
    (_, response) => void response.writeHead(307, { location: `${control.state.url}/refill/2041-01-03` }).end(),
  );
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = other.address() as AddressInfo;
    const state = { url: `http://127.0.0.1:${port}`, token: control.state.token };
    await expect(refillInDev(state, "2041-01-03")).rejects.toThrow();
    expect(asked).toEqual([]);
  } finally {
    other.closeAllConnections();
    await new Promise((resolve) => other.close(resolve));
  }
});
