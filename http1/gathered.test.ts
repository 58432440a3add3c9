import { expect, test } from "vitest";
import { Gathered } from "./gathered.ts";

test("pieces of all sizes are joined in order, and then nothing is left", () => {
  const gathered = new Gathered();
  for (let round = 0; round < 3; round++) {
    const pieces = Array.from({ length: 500 }, (_, i) => Buffer.alloc((i * 37) % (i % 50 === 0 ? 9_001 : 7), i));
    for (const piece of pieces) gathered.add(piece);
    const whole = Buffer.concat(pieces);
    expect(gathered.bytes).toBe(whole.length);
    expect(gathered.take().equals(whole)).toBe(true);
    expect([gathered.bytes, gathered.take().length]).toEqual([0, 0]);
  }
});

test("a piece alone is not copied; with another, the first one's own buffer is left as it is", () => {
  const gathered = new Gathered();
  const large = Buffer.from("abcdef");
  gathered.add(large.subarray(0, 3));
  expect(gathered.take().buffer).toBe(large.buffer);
  gathered.add(large.subarray(0, 3));
  gathered.add(Buffer.from("XYZ"));
  expect(String(gathered.take())).toBe("abcXYZ");
  expect(String(large)).toBe("abcdef");
});

test("taken bytes are not overwritten by later ones", () => {
  const gathered = new Gathered();
  for (const text of ["a", "b"]) gathered.add(Buffer.from(text));
  const first = gathered.take();
  for (const text of ["c", "d", "e"]) gathered.add(Buffer.from(text));
  expect([String(first), String(gathered.take())]).toEqual(["ab", "cde"]);
});

test("many pieces cost no more memory than a few times what they hold", () => {
  const gathered = new Gathered();
  // A view of a large buffer, as a parser hands it out.
  for (let i = 0; i < 10_000; i++) gathered.add(Buffer.alloc(64 * 1024).subarray(0, 1));
  expect(gathered.take().buffer.byteLength).toBeLessThan(40_000);
});
