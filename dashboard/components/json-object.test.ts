import { expect, test } from "vitest";
import { readJsonObject } from "./json-object.ts";

test.each(["{}", '{"plan": "pro"}', ' {"a": {"b": [1]}}\n'])("%s is accepted as a JSON object", (text) =>
  expect(readJsonObject(text)).toEqual(JSON.parse(text)),
);

test.each(["", "null", "[]", '"text"', "1", '{"plan":', "{'plan': 1}"])("%s is rejected as a JSON object", (text) =>
  expect(readJsonObject(text)).toBeUndefined(),
);
