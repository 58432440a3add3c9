import { expect, test } from "vitest";
import { ChunkBuffer, freeRead } from "./chunk-buffer.ts";

test("ChunkBuffer joins chunks of all sizes in order until it is empty", () => {
  const buffered = new ChunkBuffer();
  for (let round = 0; round < 3; round++) {
    const chunks = Array.from({ length: 500 }, (_, i) => Buffer.alloc((i * 37) % (i % 50 === 0 ? 9_001 : 7), i));
    for (const chunk of chunks) buffered.add(chunk);
    const whole = Buffer.concat(chunks);
    expect(buffered.bytes).toBe(whole.length);
    expect(buffered.take().equals(whole)).toBe(true);
    expect([buffered.bytes, buffered.take().length]).toEqual([0, 0]);
  }
});

test("ChunkBuffer does not copy a single chunk or modify the caller's buffer", () => {
  const buffered = new ChunkBuffer();
  const large = Buffer.from("abcdef");
  buffered.add(large.subarray(0, 3));
  expect(buffered.take().buffer).toBe(large.buffer);
  buffered.add(large.subarray(0, 3));
  buffered.add(Buffer.from("XYZ"));
  expect(String(buffered.take())).toBe("abcXYZ");
  expect(String(large)).toBe("abcdef");
});

test("ChunkBuffer never overwrites bytes that it has returned", () => {
  const buffered = new ChunkBuffer();
  for (const text of ["a", "b"]) buffered.add(Buffer.from(text));
  const first = buffered.take();
  for (const text of ["c", "d", "e"]) buffered.add(Buffer.from(text));
  expect([String(first), String(buffered.take())]).toEqual(["ab", "cde"]);
});

test("ChunkBuffer memory stays proportional to the buffered bytes for many small chunks", () => {
  const buffered = new ChunkBuffer();
  // A view of a large buffer, as a parser returns it.
  for (let i = 0; i < 10_000; i++) buffered.add(Buffer.alloc(64 * 1024).subarray(0, 1));
  expect(buffered.take().buffer.byteLength).toBeLessThan(40_000);
});

test("freeRead frees a buffer that spans a whole read, but not a part of a read", () => {
  const read = Buffer.from(new Uint8Array(64).fill(1).buffer);
  const part = read.subarray(1);
  freeRead(part);
  expect(part).toEqual(Buffer.alloc(63, 1));
  freeRead(read);
  expect([read.length, part.length]).toEqual([0, 0]);
});
