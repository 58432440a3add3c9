// undici types its entry only. Why its inner file is imported: docs/decisions/0025-llhttp-out-of-undici.md.
declare module "undici/lib/llhttp/llhttp_simd-wasm.js" {
  const bytes: Buffer<ArrayBuffer>;
  export default bytes;
}

/** What is used of it. The types of Node leave these to those of browsers. */
declare namespace WebAssembly {
  class Module {
    constructor(bytes: ArrayBufferView<ArrayBuffer>);
  }
  class Instance {
    readonly exports: object;
    constructor(module: Module, imports: Record<string, Record<string, (...args: number[]) => number>>);
  }
  interface Memory {
    readonly buffer: ArrayBuffer;
  }
}
