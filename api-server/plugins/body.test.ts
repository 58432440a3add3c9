import { expect, test } from "vitest";
import { hasMoreValues } from "./body.ts";

/* `parseBody` as requests meet it is tested in test/pipeline.test.ts. */

const PADDING = " ".repeat(64);

test.each([
  { text: "[0,0,0]", values: 4 },
  { text: '{"a":1}', values: 2 },
  { text: '{"a":{"b":[1,2]},"c":null}', values: 6 },
  { text: '{"a":0,"a":0,"a":0}', values: 4 },
  // Counted as if something were in it, so that no count needs to look ahead.
  { text: "[[],{}]", values: 5 },
  // What looks like values within texts and names is none, whatever is escaped before a quotation mark.
  { text: '["[,{",",,,"]', values: 3 },
  { text: '{"a,b[{":"\\",[{\\\\","c":","}', values: 3 },
  { text: '["\\\\","\\"",","]', values: 4 },
  { text: '["\\u005b,[é{\u2028,"]', values: 2 },
])("JSON value counter returns $values for $text", ({ text, values }) => {
  const bytes = Buffer.from(text + PADDING);
  expect(hasMoreValues(bytes, values - 1)).toBe(true);
  expect(hasMoreValues(bytes, values)).toBe(false);
});

test("JSON value counter stops at the end of an unterminated string", () => {
  for (const text of ['["never ends, [', '["\\']) expect(hasMoreValues(Buffer.from(PADDING + text), 2)).toBe(false);
});
