import { expect, test } from "vitest";
import { FUNCTION_DOCS } from "./registry.ts";

test.each(FUNCTION_DOCS)(
  "analytics function $name has an example call and a description",
  ({ name, call, meaning }) => {
    expect(call.startsWith(`${name}(`)).toBe(true);
    expect(meaning).toMatch(/\.$/);
  },
);
