import * as undici from "undici";
import buildConnector from "undici/lib/core/connect.js";
import Pool from "undici/lib/dispatcher/pool.js";
import { expect, test } from "vitest";

test("the inner files of undici are what its entry exports, so that they have its types", () => {
  expect(Pool).toBe(undici.Pool);
  expect(buildConnector).toBe(undici.buildConnector);
});
