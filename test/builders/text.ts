import fc from "fast-check";

const codePoint = fc
  .oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0x80, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff }),
  )
  .map((code) => String.fromCodePoint(code));

/**
 * Generates any text without lone surrogates; a third of its code points are ASCII, including control characters. fast-check's unit
 * "binary" takes a second per file to list all code points.
 */
export const anyText = (bounds: { maxLength?: number } = {}) => fc.string({ unit: codePoint, ...bounds });
