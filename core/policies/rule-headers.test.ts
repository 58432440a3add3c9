import { expect, test } from "vitest";
import { ambiguousHeaderIn } from "./rule-headers.ts";

test.each([
  { raw: ["X-Beta", "1"], found: undefined },
  { raw: ["X-Beta", "1", "X-Other", "1", "x-other", "2"], found: undefined },
  { raw: ["X-Beta", "1", "x-beta", "1"], found: "x-beta" },
  { raw: ["X_Beta", "1"], found: "x_beta" },
  { raw: ["X.Beta", "1", "X-Beta", "1"], found: "x.beta" },
  { raw: ["A-B", "1"], found: "a-b" },
  { raw: ["A_B", "1"], found: undefined },
  { raw: ["X-Beta", "1", "Connection", "close, X-BETA"], found: "x-beta" },
  { raw: ["Connection", "close", "connection", "x-beta"], found: "x-beta" },
  { raw: ["X-Beta", "1", "Connection", "keep-alive, X-Other"], found: undefined },
])("headers $raw contain the ambiguous header $found", ({ raw, found }) =>
  expect(ambiguousHeaderIn(new Set(["x-beta", "a_b"]), raw)).toBe(found),
);
