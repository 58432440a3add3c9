import { expect, test } from "vitest";
import { ApiError } from "../api/api-error.ts";
import { fieldFaultsOf } from "./form-faults.ts";

test.each([
  ["expected text that matches ^[a-zA-Z0-9_.-]+$", "Use only letters, digits, _, ., -."],
  ["expected text that matches ^[a-z0-9]{3,5}$", "Use only lowercase letters, digits."],
  ["expected text that matches ^(?!ws_)[A-Za-z0-9]$", "Expected text that matches ^(?!ws_)[A-Za-z0-9]$."],
  ["expected at least 1, got 0", "Expected at least 1, got 0."],
])("fault of the API %j is shown as %j", (message, text) => {
  const error = new ApiError({
    status: 400,
    kind: "invalid_input",
    detail: "",
    faults: [{ location: "body.a.b", message }],
  });
  expect([...fieldFaultsOf(error)]).toEqual([["a.b", text]]);
});

test("errors without a field have no field problems", () => {
  expect(fieldFaultsOf(null).size).toBe(0);
  expect(fieldFaultsOf(new ApiError({ status: 0, kind: "unreachable", detail: "" })).size).toBe(0);
});
