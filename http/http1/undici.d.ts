// undici declares types only for its entry point. docs/decisions/0024-own-http-path.md explains why this project imports an inner file.
declare module "undici/lib/llhttp/llhttp_simd-wasm.js" {
  const bytes: Buffer<ArrayBuffer>;
  export default bytes;
}

/** Declares the part of the WebAssembly API that this project uses, because Node's types expect these declarations in the DOM types. */
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
